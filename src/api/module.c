/*
 * module.c
 *	  the module magic, and what happens when the library is loaded
 */
#include "api/api.h"

STEPWISE_MODULE_MAGIC("pg_stepwise", "0.1.0");

void		_PG_init(void);

/* Define the settings, and register hooks and callbacks. */
void
_PG_init(void)
{
	SettingsInit();
	CatalogInit();
	PlannerInit();
	TableInit();
	TenantInit();
	UsedInit();
	ChainInit();
}
