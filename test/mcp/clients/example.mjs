// A server of examples/ with official clients: it forwards what stepwise.mcp answers, for each generation, after a restart too.

import { KINDS, check, connect, failure, finish, is, like, plan, restartServer } from './lib.mjs';

const [, , interpreter, program] = process.argv;
const server = { command: interpreter, args: [program], env: process.env };

for (const kind of Object.keys(KINDS)) {
  const session = await connect(kind, { server, answer: async () => ({ action: 'accept', content: { response: 'blue' } }) });

  await check(`${program}, ${kind}: lists and reads`, async () => {
    is((await session.client.listTools()).tools.length, 13);
    is((await session.client.listPrompts()).prompts.length, 1);
    is((await failure(session.client.readResource({ uri: 'stepwise://plan/none' }))).code, session.old ? -32002 : -32602);
  });
  await check(`${program}, ${kind}: works through a plan`, async () => {
    const id = await plan(session, 'forwarded', [{ name: 'ask', prompt: 'Which colour?' }, { name: 'paint', instructions: 'Paint it ${steps.ask.outputs.response}' }]);
    let next = await session.tool('get_next_step', { plan_id: id });
    is(session.questions.length, session.modern ? 1 : 0);
    if (!session.modern) {
      is(next.status, 'awaiting_review');
      await session.tool('submit_user_decision', { checkpoint_id: next.checkpointId, response: 'blue' });
      next = await session.tool('get_next_step', { plan_id: id });
    }
    is(next.instructions, 'Paint it blue');
    is((await session.tool('submit_step_result', { step_id: next.stepId, result: 1 })).next.status, 'plan_complete');
  });
  await check(`${program}, ${kind}: hands on errors`, async () => {
    like(await session.error('brew', { leaf: 'none' }), /there is no leaf/);
    is((await failure(session.call('no_such_tool'))).code, -32602);
  });
}

await check(`${program}: goes on after a restart`, async () => {
  const session = await connect('sdk 1.x', { server });
  await restartServer();
  await session.call('brew', { leaf: 'x' }).catch(() => {}); // the connection is lost here, or was replaced before
  is((await session.tool('brew', { leaf: 'x' })).cup, 'x');
});
await finish();
