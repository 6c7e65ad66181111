/*
 * slot.c
 *	  ids that carry the slot of their tenant
 *
 * Tenants may be spread over servers by their slot, a number from 0 to 4095.
 * It is made of the name of the tenant, and each id of the tenant ends with it.
 * So one map from slots to servers finds the server of a tenant and of an id.
 */
#include "base/base.h"

/* Compute the slot of a tenant: the first 12 bits of the SHA-256 of its name in UTF-8. */
static int
ComputeSlot(const char *tenant)
{
	const char *name = Utf8Form(tenant);
	uint8		digest[32];

	Sha256(name, strlen(name), digest);
	return digest[0] << 4 | digest[1] >> 4;
}

/* Find the slot of a tenant. The last one is kept, since a backend seldom changes its tenant. */
int
TenantSlot(const char *tenant)
{
	static char last[TENANT_MAX + 1];
	static int	slot = -1;

	if (slot >= 0 && strcmp(tenant, last) == 0)
		return slot;
	if (strlen(tenant) > TENANT_MAX)
		return ComputeSlot(tenant);
	slot = -1;
	strlcpy(last, tenant, sizeof(last));
	return slot = ComputeSlot(tenant);
}

/* Read the slot at the end of an id. */
int
SlotOf(const pg_uuid_t *id)
{
	return (id->data[14] & 0x0f) << 8 | id->data[15];
}

/* Make a new id of the tenant of a call. */
pg_uuid_t
IdNew(const Call *call)
{
	return UuidNew(TenantSlot(call->tenant));
}
