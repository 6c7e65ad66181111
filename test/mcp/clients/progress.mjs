// Long runs: what is done is stored while they go on, clients hear of it, a cancel keeps it, and work that was cut off is taken up again.

import { check, command, connect, failure, finish, is, like, plan, restartServer, sql, until } from './lib.mjs';

const TASKS = 'io.modelcontextprotocol/tasks';
const brewing = (count, seconds) => Array.from({ length: count }, (_, n) => ({ name: `s${n + 1}`, tool: 'brew', arguments: { leaf: 'assam', seconds } }));
const ended = async (id) => Number(await sql(`SELECT count(*) FROM stepwise.step WHERE plan_id = '${id}' AND status = 'completed'`));
const statuses = async (id) => (await sql(`SELECT string_agg(status::text, ' ' ORDER BY step_order) FROM stepwise.step WHERE plan_id = '${id}'`)).split(' ');
const rises = (told) => told.every((progress, i) => i === 0 || progress.progress > told[i - 1].progress);

// Call something whose progress is to be heard: its result; what came, since a client does not hear of what comes just before an answer;
// and how many steps were stored when the client heard of it.
async function listen(session, id, call) {
  const stored = [];
  session.heard.length = 0;
  const result = await call({ onprogress: async () => { if (stored.length < 8) stored.push(await ended(id)); }, resetTimeoutOnProgress: true });
  return { result, stored, told: session.heard.filter((message) => message.method === 'notifications/progress').map((message) => message.params) };
}

async function use(kind) {
  const name = (what) => `${kind}, long runs: ${what}`;
  const main = await connect(kind);

  await check(name('progress rises to the total, and what was done is seen meanwhile'), async () => {
    const id = await plan(main, 'long', brewing(5, 0.3));
    const { result, stored, told } = await listen(main, id, (request) => main.tool('run', { plan_id: id }, { request }));
    is(result.task_status, 'completed');
    is(told.map((progress) => [progress.progress, progress.total]), [1, 2, 3, 4, 5].map((n) => [n, 5]));
    is(told.map((progress) => progress.message), [1, 2, 3, 4, 5].map((n) => `step "s${n}" has ended`));
    is(stored.some((n) => n > 0 && n < 5), true);
  });

  await check(name('a run without a token is stored meanwhile too'), async () => {
    const id = await plan(main, 'quiet', brewing(4, 0.4));
    const running = main.tool('run', { plan_id: id });
    await until(async () => await ended(id) > 0);
    is((await statuses(id)).includes('pending'), true);
    is((await running).steps.map((step) => step.status), Array(4).fill('completed'));
    is(await sql(`SELECT count(*) || ' ' || bool_and(duration > '1.5 seconds') FROM stepwise.tool_call WHERE plan_id = '${id}' AND tool = 'run'`), '1 true');
  });

  await check(name('many short steps take few transactions'), async () => {
    const id = await plan(main, 'many', brewing(120, 0));
    const { result, told } = await listen(main, id, (request) => main.tool('run', { plan_id: id }, { request }));
    is([result.task_status, told.length, rises(told)], ['completed', 120, true]);
    is(Number(await sql(`SELECT count(DISTINCT xmin::text) FROM stepwise.step WHERE plan_id = '${id}'`)) < 60, true);
  });

  await check(name('max_steps counts over all of it'), async () => {
    const id = await plan(main, 'some', brewing(4, 0.4));
    await main.tool('run', { plan_id: id, max_steps: 3 });
    is(await statuses(id), ['completed', 'completed', 'completed', 'pending']);
  });

  await check(name('a cancel keeps what was stored'), async () => {
    const id = await plan(main, 'cancelled', brewing(20, 0.3));
    const stop = new AbortController();
    const running = failure(main.call('run', { plan_id: id }, { request: { signal: stop.signal } }));
    await until(async () => await ended(id) > 1);
    stop.abort();
    await running;
    await until(async () => await sql(`SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'`) === '0');
    const kept = await ended(id);
    is([kept > 1, kept < 20, [...new Set(await statuses(id))]], [true, true, ['completed', 'pending']]);
    is((await main.tool('run', { plan_id: id, max_steps: 1 })).steps.filter((step) => step.status === 'completed').length, kept + 1);
  });

  await check(name('a restart of the server keeps what was stored, and says so'), async () => {
    const id = await plan(main, 'restarted', brewing(12, 0.3));
    const running = main.tool('run', { plan_id: id }).catch((error) => error);
    await until(async () => await ended(id) > 1);
    await restartServer();
    const how = await running;
    if (how instanceof Error) like(how.message, /connection.*lost[^]*get_plan_status/);
    else is(how.task_status, 'completed'); // the restart came between two rounds, and was not noticed
    is(await ended(id) > 1, true);
    is((await main.tool('run', { plan_id: id })).task_status, 'completed');
    is(await sql(`SELECT max(attempt) FROM stepwise.step WHERE plan_id = '${id}'`), '1');
  });

  await check(name('a workflow that starts as a prompt reports progress'), async () => {
    const before = await sql('SELECT count(*) FROM stepwise.plan');
    const { result, told } = await listen(main, '00000000-0000-7000-8000-000000000001', (options) => main.client.getPrompt({ name: 'slow', arguments: {} }, options));
    is([result._meta.task_status, result._meta.steps.length], ['completed', 4]);
    is(told.map((progress) => progress.progress), [1, 2, 3, 4]);
    is(Number(await sql('SELECT count(*) FROM stepwise.plan')), Number(before) + 1);
  });

  await check(name('a nested plan is counted too'), async () => {
    const id = await plan(main, 'nested', [{ name: 'inner', workflow: 'slow' }, ...brewing(1, 0.1)]);
    const { result, told } = await listen(main, id, (request) => main.tool('run', { plan_id: id }, { request }));
    is([result.task_status, told.length, rises(told), told.every((progress) => progress.progress <= progress.total)], ['completed', 5, true, true]);
  });

  await check(name('progress comes without messages of the server too'), async () => {
    const silent = await connect(kind, { server: command("owner options='-c client_min_messages=error'") });
    const id = await plan(silent, 'silent', brewing(4, 0.4));
    const { told } = await listen(silent, id, (request) => silent.tool('run', { plan_id: id }, { request }));
    is([told.length > 0, rises(told), told.every((progress) => progress.total === 4)], [true, true, true]);
    await silent.close();
  });

  await main.close();
}

// --- tasks -------------------------------------------------------------------

async function useTasks(kind) {
  const name = (what) => `${kind}, long tasks: ${what}`;
  const capabilities = { extensions: { [TASKS]: {} } };
  const session = await connect(kind, { capabilities });
  const other = await connect(kind, { capabilities });
  const start = async (asking, id, meta) => {
    const made = await asking.ask('tools/call', { name: 'run', arguments: { plan_id: id }, ...(!asking.modern && { task: {} }), ...(meta && { _meta: meta }) });
    is((made.task ?? made).taskId, id);
  };
  const state = (asking, id) => asking.ask('tasks/get', { taskId: id });

  await check(name('the status says how far it is'), async () => {
    const id = await plan(session, 'told', brewing(4, 0.4));
    const said = new Set();
    await start(session, id);
    await until(async () => { const { status, statusMessage } = await state(other, id); said.add(statusMessage); return status === 'completed'; });
    is([...said].filter((text) => /^[123] of 4 steps have ended$/.test(text)).length > 0, true);
  });

  if (!session.modern) {
    await check(name('progress is heard until it ends'), async () => {
      const id = await plan(session, 'heard', brewing(4, 0.3));
      session.heard.length = 0;
      await start(session, id, { progressToken: 'mine' });
      await session.ask('tasks/result', { taskId: id });
      const told = session.heard.filter((message) => message.method === 'notifications/progress').map((message) => message.params);
      is(told.map((params) => [params.progressToken, params.progress, params.total]), [1, 2, 3, 4].map((n) => ['mine', n, 4]));
      is(told.every((params) => params._meta['io.modelcontextprotocol/related-task'].taskId === id), true);
      is(session.heard.findIndex((message) => message.method === 'notifications/progress') > session.heard.findIndex((message) => message.result?.task), true);
    });
  } else {
    await check(name('a subscription tells how far it is'), async () => {
      const id = await plan(session, 'streamed', brewing(4, 0.4));
      session.heard.length = 0;
      session.ask('subscriptions/listen', { notifications: { taskIds: [id] } }).catch(() => {});
      await until(() => session.heard.some((message) => message.method === 'notifications/subscriptions/acknowledged'));
      await start(session, id);
      const told = () => session.heard.filter((message) => message.method === 'notifications/tasks').map((message) => message.params);
      await until(() => told().some((params) => params.status === 'completed'));
      is(told().some((params) => params.status === 'working' && /^[123] of 4 steps have ended$/.test(params.statusMessage)), true);
    });
  }

  await check(name('a cancel, by another connection, keeps what was stored'), async () => {
    const id = await plan(session, 'task cancelled', brewing(20, 0.3));
    await start(session, id);
    await until(async () => await ended(id) > 1);
    await other.ask('tasks/cancel', { taskId: id });
    const kept = await ended(id);
    is([kept > 1, kept < 20, [...new Set(await statuses(id))]], [true, true, ['completed', 'skipped']]);
    is((await state(session, id)).status, 'cancelled');
    await until(async () => await sql(`SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'`) === '0');
    is(await ended(id), kept);
  });

  await check(name('a task is stored before its answer, whatever becomes of the program'), async () => {
    for (const call of [{ name: 'brew', arguments: { leaf: 'mint', seconds: 0.5 } }, { name: 'start_workflow', arguments: { workflow: 'slow' } }]) {
      const dying = await connect(kind, { capabilities });
      dying.transport.onmessage = ((hear) => (message) => { hear(message); if (message.result?.task ?? message.result?.taskId) process.kill(dying.transport.pid, 'SIGKILL'); })(dying.transport.onmessage);
      const made = await dying.ask('tools/call', { ...call, ...(!dying.modern && { task: {} }) });
      const id = (made.task ?? made).taskId;
      is((await state(other, id)).status, 'working');
      await until(async () => (await state(other, id)).status === 'completed');
      is([...new Set(await statuses(id))], ['completed']);
    }
  });

  await check(name('the work of a program that was killed is taken up'), async () => {
    const dying = await connect(kind, { capabilities });
    const id = await plan(dying, 'left', brewing(8, 0.3));
    await start(dying, id);
    await until(async () => await ended(id) > 1);
    process.kill(dying.transport.pid, 'SIGKILL');
    await until(async () => await sql(`SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'`) === '0');
    is((await state(other, id)).status, 'working');
    await until(async () => (await state(other, id)).status === 'completed');
    is(await statuses(id), Array(8).fill('completed'));
    is(await sql(`SELECT max(attempt) FROM stepwise.step WHERE plan_id = '${id}'`), '1');
  });

  await session.close();
  await other.close();
}

await sql(`SELECT stepwise.define_workflow('{"name": "slow", "steps": [${[1, 2, 3, 4].map((n) => `{"name": "s${n}", "tool": "brew", "arguments": {"leaf": "assam", "seconds": 0.3}}`)}]}')`);
// one client of each generation
for (const kind of ['sdk 1.x', 'client 2.x pinned']) {
  await use(kind);
  await useTasks(kind);
}
await finish();
