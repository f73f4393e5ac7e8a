"""The ground of the embedded IAM: its schema, its generation, its resource type."""

from pathlib import Path

from better_compute.identity.iam.exports import IAM_TYPE
from better_compute.kernel.module import Module

MODULE = Module(name="iam", package=Path(__file__).parent, resource_types=(IAM_TYPE,))
