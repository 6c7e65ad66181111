/*
 * module.c
 *	  the module magic, and the initialization of the library
 */
#include "api/api.h"

STEPWISE_MODULE_MAGIC("pg_stepwise", STEPWISE_VERSION);

void		_PG_init(void);

/* Define the settings, and register hooks and callbacks. */
void
_PG_init(void)
{
	SettingsInit();
	CatalogInit();
	EnumInit();
	PlannerInit();
	DefaultsInit();
	PlannedInit();
	FactsInit();
	CallInit();
	LookInit();
	SendInit();
	InvokeInit();
	ToolCacheInit();
	TenantInit();
	UsedInit();
	ChainInit();
	CallableInit();
}
