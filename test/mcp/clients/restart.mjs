// The server restarts while clients are connected. The call in flight says so, and the next ones go on.

import { KINDS, check, connect, failure, finish, is, like, plan, restartServer, sql, until } from './lib.mjs';

const sessions = await Promise.all(Object.keys(KINDS).map((kind) => connect(kind)));
const plans = await Promise.all(sessions.map((session) => plan(session, 'restart', [{ name: 'one', instructions: 'One' }, { name: 'two', instructions: 'Two' }])));
const steps = await Promise.all(sessions.map((session, n) => session.tool('get_next_step', { plan_id: plans[n] })));
const flying = sessions.map((session) => failure(session.tool('brew', { leaf: 'x', seconds: 60 })));
const watching = await sessions[1].client.listen({ resourceSubscriptions: [`stepwise://plan/${plans[1]}`] });

await until(async () => await sql(`SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'`) === String(sessions.length));
await restartServer();
for (const [n, kind] of Object.keys(KINDS).entries()) {
  await check(`${kind}: the call in flight says that the connection was lost`, async () => {
    like((await flying[n]).message, /connection/);
  });
  await check(`${kind}: the plan goes on after a restart`, async () => {
    const { next } = await sessions[n].tool('submit_step_result', { step_id: steps[n].stepId, result: 1 });
    is([next.status, next.name], ['step_ready', 'two']);
  });
}
await check('a subscription lives on after a restart', async () => {
  await until(async () => sessions[1].updated.length > 0);
  await watching.close();
});

for (const kind of Object.keys(KINDS)) {
  await check(`${kind}: a person answers after a restart`, async () => {
    const asking = await connect(kind, { answer: async () => { await restartServer(); return { action: 'accept', content: { response: 'blue' } }; } });
    const id = await plan(asking, 'answered late', [{ name: 'ask', prompt: 'Which colour?' }, { name: 'paint', instructions: 'Paint it ${steps.ask.outputs.response}' }]);
    is([(await asking.tool('get_next_step', { plan_id: id })).instructions, asking.questions.length], ['Paint it blue', 1]);
    await asking.close();
  });
}

// one client of each generation
for (const kind of ['sdk 1.x', 'client 2.x pinned']) {
  await check(`${kind}: a task goes on after a restart`, async () => {
    const session = await connect(kind, { capabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } } });
    const id = await plan(session, 'task', Array.from({ length: 6 }, (_, n) => ({ name: `s${n}`, tool: 'brew', arguments: { leaf: 'mint', seconds: 0.3 } })));
    await session.ask('tools/call', { name: 'run', arguments: { plan_id: id }, ...(!session.modern && { task: {} }) });
    await until(async () => Number(await sql(`SELECT count(*) FROM stepwise.step WHERE plan_id = '${id}' AND status = 'completed'`)) > 1);
    await restartServer();
    const restarted = Date.now();
    const result = session.modern ? (await until(async () => { const task = await session.ask('tasks/get', { taskId: id }); return task.status === 'completed' && task; })).result
      : await session.ask('tasks/result', { taskId: id });
    is([result.structuredContent.task_status, Date.now() - restarted < 20000], ['completed', true]);
    is(await sql(`SELECT string_agg(DISTINCT status || ' ' || attempt, ', ') FROM stepwise.step WHERE plan_id = '${id}'`), 'completed 1');
    await session.close();
  });
}
await finish();
