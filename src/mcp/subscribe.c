/*
 * subscribe.c
 *	  tell clients what has changed
 *
 * Nothing is kept here. stepwise-mcp holds the state of a subscription: what it
 * is about, and how each of these stood when it was last told. When the
 * database notifies, or after a while, it hands the state in, and gets the
 * messages for the client and the new state. How a plan stands is the time of
 * the last change in its tree.
 *
 * A caller other than stepwise-mcp can ask for changes the same way.
 */
#include "mcp/mcp.h"

#define META_SUBSCRIPTION	"io.modelcontextprotocol/subscriptionId"
#define SUBSCRIBED_MAX		100 /* resources or tasks in one subscription */
#define ENTRIES_READ		1000	/* of the audit log, to see whether a list has changed */

/* ---------- how things stand ---------- */

/* Say how a plan and the plans nested in it stand; NULL if there is none. */
static char *
PlanStand(Call *call, const pg_uuid_t *plan_id)
{
	static KeptQuery read = {
		"SELECT max(p.updated_at) FROM stepwise.plan AS p WHERE p.tenant = $1"
		" AND (p.id = $2 OR p.root_id = $2 AND p.parent_step_id IS NOT NULL)",
		2, {TEXTOID, UUIDOID}
	};
	Rows		rows = QueryById(call, &read, plan_id);

	return RowIsNull(&rows, 0, 1) ? NULL : TimeText(RowTime(&rows, 0, 1));
}

static char *
StandOfUri(Call *call, const char *text, const char *before)
{
	ResourceUri uri = {0};

	return UriRead(text, &uri) ? PlanStand(call, &uri.plan_id) : NULL;
}

static char *
StandOfTask(Call *call, const char *text, const char *before)
{
	pg_uuid_t	id;

	return UuidParse(text, &id) ? PlanStand(call, &id) : NULL;
}

/*
 * Say how a register of the tenant stands: "HEAD/LAST". HEAD is the newest
 * entry of the tenant's audit chain, LAST the newest that is about the
 * register. Only entries after the HEAD of before are read; if there are very
 * many, one of them is taken to be about it. HEAD is the last entry of a batch,
 * so what came later is in batches behind it, which an index lists.
 */
static char *
RegisterStand(Call *call, const char *before, const char *actions)
{
	static KeptQuery read = {
		"SELECT coalesce(pg_catalog.max(a.id), $2) || '/' || CASE WHEN pg_catalog.count(*) = " CppAsString2(ENTRIES_READ) " THEN pg_catalog.max(a.id)"
		" ELSE coalesce(pg_catalog.max(a.id) FILTER (WHERE pg_catalog.starts_with(a.detail ->> 'action', $3)), $4) END"
		" FROM (SELECT x.id, x.detail FROM stepwise.audit AS x WHERE x.tenant = $1 AND x.plan_id IS NULL AND x.batch > $2"
		" ORDER BY x.batch DESC, x.id DESC LIMIT " CppAsString2(ENTRIES_READ) ") AS a",
		4, {TEXTOID, INT8OID, TEXTOID, INT8OID}
	};
	const char *slash = before ? strchr(before, '/') : NULL;
	Params		params = {0};
	Rows		rows;

	ParamTenant(&params, call);
	ParamDatum(&params, Int64GetDatum(before ? strtoll(before, NULL, 10) : 0));
	ParamText(&params, actions);
	ParamDatum(&params, Int64GetDatum(slash ? strtoll(slash + 1, NULL, 10) : 0));
	rows = QueryRun(&read, &params);
	return RowText(&rows, 0, 1);
}

static char *
StandOfTools(Call *call, const char *before)
{
	return RegisterStand(call, before, "tool_");
}

static char *
StandOfPrompts(Call *call, const char *before)
{
	return RegisterStand(call, before, "workflow_");
}

/* The newest root plan. If there are only nested ones among the newest plans, it is the one of before. */
static char *
StandOfResources(Call *call, const char *before)
{
	static KeptQuery read = {
		"SELECT p.id::text FROM (SELECT q.id, q.parent_step_id FROM stepwise.plan AS q WHERE q.tenant = $1 ORDER BY q.id DESC"
		" LIMIT " CppAsString2(PLANS_LOOKED) ") AS p WHERE p.parent_step_id IS NULL ORDER BY p.id DESC LIMIT 1",
		1, {TEXTOID}, .in_order = true
	};
	Rows		rows = QueryOfTenant(call, &read);

	return rows.count > 0 ? RowText(&rows, 0, 1) : pstrdup(before ? before : "");
}

/* the lists that can be subscribed to */
static const struct
{
	const char *wanted;			/* key of the request */
	const char *method;			/* of the notification */
	char	   *(*stand) (Call *call, const char *before);
}			Lists[] = {
	{"toolsListChanged", "notifications/tools/list_changed", StandOfTools},
	{"promptsListChanged", "notifications/prompts/list_changed", StandOfPrompts},
	{"resourcesListChanged", "notifications/resources/list_changed", StandOfResources}
};

/* ---------- messages ---------- */

/* Make a notification. For a modern client it names the subscription. */
static Jsonb *
Notification(const char *method, const Jsonb *params, const Jsonb *subscription)
{
	JsonBuilder b = {0};

	if (subscription != NULL)
		params = JsonMerge(params, JsonObjectOf("_meta", JsonMerge(JsonGetJson(params, "_meta"),
																   JsonObjectOf(META_SUBSCRIPTION, subscription))));
	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "jsonrpc", "2.0");
	JsonPutText(&b, "method", method);
	JsonPutJson(&b, "params", params);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* ---------- the state ---------- */

/* what a subscription is about, and what is to be told */
typedef struct Watch
{
	Request    *request;
	Jsonb	   *subscription;	/* its id, of a modern client; or NULL */
	Jsonb	   *before;			/* the state until now; or NULL */
	List	   *messages;		/* of Jsonb */
} Watch;

/* Say how something stood before; NULL if it was not there. */
static char *
StandBefore(const Watch *w, const char *kind, const char *key)
{
	Jsonb	   *before = w->before ? JsonGetJson(w->before, kind) : NULL;

	return before && JsonIsObject(before) ? JsonGetText(before, key) : NULL;
}

/* Return the part of a stand that tells a change. What comes before the slash helps to find it. */
static const char *
TellingPart(const char *stand)
{
	const char *slash = strchr(stand, '/');

	return slash ? slash + 1 : stand;
}

/* Check whether something stands otherwise than before. What is new has not changed. */
static bool
StandHasChanged(const Watch *w, const char *stood, const char *stand)
{
	if (w->before == NULL)
		return false;
	return stood == NULL || stand == NULL ? stood != stand : strcmp(TellingPart(stood), TellingPart(stand)) != 0;
}

/* Read how something stands, and put it into the new state. Returns whether it has changed. */
static bool
WatchOne(Watch *w, JsonBuilder *b, const char *kind, const char *key, char *(*stand) (Call *call, const char *key, const char *before))
{
	MemoryContext outer = CurrentMemoryContext;
	char	   *before = StandBefore(w, kind, key);
	char	   *now;
	Call		call;

	CallBeginReading(&call);
	now = stand(&call, key, before);
	now = now ? MemoryContextStrdup(outer, now) : NULL;
	CallEnd(&call, NULL);
	JsonPutText(b, key, now);
	return StandHasChanged(w, before, now);
}

static char *
StandOfList(Call *call, const char *wanted, const char *before)
{
	for (size_t i = 0; i < lengthof(Lists); i++)
		if (strcmp(Lists[i].wanted, wanted) == 0)
			return Lists[i].stand(call, before);
	return NULL;
}

/* Tell of a list that has changed. */
static Jsonb *
TellList(Watch *w, const char *wanted)
{
	for (size_t i = 0; i < lengthof(Lists); i++)
		if (strcmp(Lists[i].wanted, wanted) == 0)
			return Notification(Lists[i].method, JsonEmptyObject(), w->subscription);
	return NULL;
}

/* Tell of a resource that has changed. */
static Jsonb *
TellUri(Watch *w, const char *uri)
{
	return Notification("notifications/resources/updated", JsonTextOf("uri", uri), w->subscription);
}

/* Tell of a task that has changed, and how it stands; NULL if it was removed. */
static Jsonb *
TellTask(Watch *w, const char *id)
{
	pg_uuid_t	task_id;
	Jsonb	   *task = UuidParse(id, &task_id) ? TaskNotice(w->request, &task_id) : NULL;

	return task ? Notification("notifications/tasks", task, w->subscription) : NULL;
}

/* the kinds of things that can be subscribed to; the names are keys of the state */
static const struct
{
	const char *name;
	char	   *(*stand) (Call *call, const char *key, const char *before);
	Jsonb	   *(*tell) (Watch *w, const char *key);
}			Kinds[] = {
	{"lists", StandOfList, TellList},
	{"uris", StandOfUri, TellUri},
	{"tasks", StandOfTask, TellTask}
};

/* Look at all things of a state, and put the new state. Messages about what has changed are collected. */
static void
PutState(JsonBuilder *b, Watch *w, const Jsonb *about)
{
	for (size_t i = 0; i < lengthof(Kinds); i++)
	{
		Jsonb	   *things = JsonGetJson(about, Kinds[i].name);
		int			count;
		const char **keys = JsonKeys(things && JsonIsObject(things) ? things : NULL, &count);

		JsonObjectStart(b, Kinds[i].name);
		for (int j = 0; j < Min(count, SUBSCRIBED_MAX); j++)
		{
			Jsonb	   *message = WatchOne(w, b, Kinds[i].name, keys[j], Kinds[i].stand) ? Kinds[i].tell(w, keys[j]) : NULL;

			if (message != NULL)
				w->messages = lappend(w->messages, message);
		}
		JsonObjectEnd(b);
	}
	if (w->subscription != NULL)
		JsonPutJson(b, "subscription", w->subscription);
	JsonPutJson(b, "capabilities", w->request->capabilities);
}

static Jsonb *
StateOf(Watch *w, const Jsonb *about)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	PutState(&b, w, about);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

static void
PutMessages(JsonBuilder *b, const List *messages)
{
	ListCell   *cell;

	JsonArrayStart(b, "messages");
	foreach(cell, messages)
		JsonPutJson(b, NULL, lfirst(cell));
	JsonArrayEnd(b);
}

/* Let stepwise-mcp listen: with these messages now, and this state. */
static void
ListenBegin(Request *request, const Jsonb *state, const List *messages)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutJson(&b, "state", state);
	JsonPutInt(&b, "ms", WAIT_MS);
	PutMessages(&b, messages);
	JsonObjectEnd(&b);
	BesidePut(request, "listen", JsonFinish(&b));
}

/* ---------- resources/subscribe, resources/unsubscribe ---------- */

/* Read the URI of a subscription. */
static char *
SubscribedUri(Request *request, bool must_exist)
{
	char	   *text = ParamRequiredText(request, "uri");
	char	   *stand;
	Call		call;

	CallBeginReading(&call);
	stand = StandOfUri(&call, text, NULL);
	CallEnd(&call, NULL);
	if (must_exist && stand == NULL)
		ResourceNotFound(request, text);
	return text;
}

/* Answer resources/subscribe. */
Jsonb *
ResourcesSubscribe(Request *request)
{
	char	   *uri = SubscribedUri(request, true);
	Watch		w = {.request = request};

	ListenBegin(request, StateOf(&w, JsonObjectOf("uris", JsonTextOf(uri, ""))), NIL);
	return JsonEmptyObject();
}

/* Answer resources/unsubscribe. The subscription is held by the caller. */
Jsonb *
ResourcesUnsubscribe(Request *request)
{
	SubscribedUri(request, false);
	return JsonEmptyObject();
}

/* ---------- subscriptions/listen ---------- */

/* Read a list of texts that is subscribed to, as the keys of an object. */
static Jsonb *
SubscribedTexts(Request *request, const Jsonb *wanted, const char *key)
{
	Jsonb	   *texts = JsonGetJson(wanted, key);
	JsonBuilder b = {0};
	JsonbValue	text;

	if (texts != NULL && (!JsonIsArray(texts) || JB_ROOT_COUNT(texts) > SUBSCRIBED_MAX))
		RequestRefuse(request, RPC_INVALID_PARAMS, NULL, "%s must be an array of at most %d strings", key, SUBSCRIBED_MAX);
	JsonObjectStart(&b, NULL);
	for (int i = 0; texts != NULL && JsonGetIndex(texts, i, &text); i++)
	{
		if (text.type != jbvString)
			RequestRefuse(request, RPC_INVALID_PARAMS, NULL, "%s must be an array of strings", key);
		JsonPutText(&b, JsonValueText(&text), "");
	}
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Read which lists are subscribed to, as the keys of an object. */
static Jsonb *
SubscribedLists(const Jsonb *wanted)
{
	JsonBuilder b = {0};
	JsonbValue	flag;

	JsonObjectStart(&b, NULL);
	for (size_t i = 0; i < lengthof(Lists); i++)
		if (JsonGet(wanted, Lists[i].wanted, &flag) && flag.type == jbvBool && flag.val.boolean)
			JsonPutText(&b, Lists[i].wanted, "");
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Repeat which notifications will come, for the acknowledgement. */
static Jsonb *
Acknowledged(const Jsonb *about)
{
	JsonBuilder b = {0};
	int			count;
	const char **keys = JsonKeys(JsonGetJson(about, "lists"), &count);

	JsonObjectStart(&b, NULL);
	JsonObjectStart(&b, "notifications");
	for (int i = 0; i < count; i++)
		JsonPutBool(&b, keys[i], true);
	keys = JsonKeys(JsonGetJson(about, "uris"), &count);
	JsonArrayStart(&b, "resourceSubscriptions");
	for (int i = 0; i < count; i++)
		JsonPutText(&b, NULL, keys[i]);
	JsonArrayEnd(&b);
	keys = JsonKeys(JsonGetJson(about, "tasks"), &count);
	JsonArrayStart(&b, "taskIds");
	for (int i = 0; i < count; i++)
		JsonPutText(&b, NULL, keys[i]);
	JsonArrayEnd(&b);
	JsonObjectEnd(&b);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Answer subscriptions/listen. Its result comes when the stream ends. */
Jsonb *
SubscriptionsListen(Request *request)
{
	Jsonb	   *wanted = JsonGetJson(request->params, "notifications");
	Watch		w = {.request = request, .subscription = request->id};
	JsonBuilder b = {0};
	Jsonb	   *tasks;
	Jsonb	   *about;
	Jsonb	   *acknowledged;

	if (wanted == NULL || !JsonIsObject(wanted))
		RequestRefuse(request, RPC_INVALID_PARAMS, NULL, "subscriptions/listen needs the parameter \"notifications\", an object");
	tasks = SubscribedTexts(request, wanted, "taskIds");
	if (JB_ROOT_COUNT(tasks) > 0)
		CheckKnowsTasks(request);
	JsonObjectStart(&b, NULL);
	JsonPutJson(&b, "lists", SubscribedLists(wanted));
	JsonPutJson(&b, "uris", SubscribedTexts(request, wanted, "resourceSubscriptions"));
	JsonPutJson(&b, "tasks", tasks);
	JsonObjectEnd(&b);
	about = JsonFinish(&b);
	acknowledged = Notification("notifications/subscriptions/acknowledged", Acknowledged(about), w.subscription);
	ListenBegin(request, StateOf(&w, about), list_make1(acknowledged));
	return JsonObjectOf("_meta", JsonObjectOf(META_SUBSCRIPTION, request->id));
}

/* ---------- stepwise/changes ---------- */

/* Answer stepwise/changes: what has changed since a state, and the new state. */
Jsonb *
StepwiseChanges(Request *request)
{
	Jsonb	   *state = JsonGetJson(request->params, "state");
	Watch		w = {.request = request, .before = state};
	Jsonb	   *capabilities;
	JsonBuilder b = {0};
	Jsonb	   *now;

	if (state == NULL || !JsonIsObject(state))
		RequestRefuse(request, RPC_INVALID_PARAMS, NULL, "stepwise/changes needs the parameter \"state\", an object");
	/* the caller sends no more than the state: who subscribed is in there */
	w.subscription = JsonGetJson(state, "subscription");
	capabilities = JsonGetJson(state, "capabilities");
	request->modern = w.subscription != NULL;
	request->capabilities = capabilities && JsonIsObject(capabilities) ? capabilities : JsonEmptyObject();
	now = StateOf(&w, state);
	request->modern = false;
	JsonObjectStart(&b, NULL);
	PutMessages(&b, w.messages);
	JsonPutJson(&b, "state", now);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}
