"""The usage of each tenant, its quota and its share."""

class TenantUsage:
    """Tenants by number; pods without one have a tenant of their own."""

    count: int
    def add_tenant(self, cpu_most: int, mem_most: int, gpu_most: int, weight: float) -> int:
        """A new tenant, its quota in milli-CPU, MiB and milli-GPU, and its weight."""
    def used(self, tenant: int) -> tuple[int, int, int]:
        """(milli-CPU, MiB, milli-GPU) that the tenant's running pods hold."""
