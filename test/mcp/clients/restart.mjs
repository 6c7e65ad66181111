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
await finish();
