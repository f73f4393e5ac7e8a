"""How a background step tells of the state that an instance has reached."""

from better_compute.kernel.reconciler import Step
from better_compute.modules.instances.store import InstanceRow
from better_compute.modules.instances.store.moves import event_of


def tell(step: Step, row: InstanceRow) -> None:
    """Publishes the event that fits the instance's state, when the step commits."""
    event, changed = event_of(row)
    step.effects.add_event(
        event_id=step.new_id("evt"),
        tenant_id=row.tenant_id,
        event_type=event.name,
        subject=f"instance/{row.id}",
        payload=event.dump(changed),
    )
