"""The calls of `policies.*`, `roles.*`, `bindings.*`, `groups.*`, and boundaries of identities.

Making a policy, a role or a group gives nobody anything; binding a role and joining a group do, so both are held to the
rule of passing on, and so is a change of somebody's boundary.
"""
