// How a plan comes to each kind of wait: its steps, and calls of tools before it. These get the id of the plan.

import { sql } from './lib.mjs';

export const next = (id) => ['get_next_step', { plan_id: id }];
const run = (id) => ['run', { plan_id: id }];
const update = (step, action, more = {}) => (id) => ['update_step', { plan_id: id, step, action, ...more }];
const fail = (step) => update(step, 'fail', { error: 'no luck' });
export const WAITS = {
  'a prompt': [[{ name: 'a', prompt: 'Sure?' }, { name: 'b' }], next],
  'a review': [[{ name: 'a' }, { name: 'b' }], next, (id) => ['request_user_review', { plan_id: id, step: 'a', summary: 'Look' }]],
  'a gate before': [[{ name: 'a', tool: 'brew', arguments: { leaf: 'x' }, review: { when: 'before', summary: 'Go?' } }], next],
  'a gate after': [[{ name: 'a', review: { when: 'after', summary: 'Good?' } }, { name: 'b' }], next, (id) => ['submit_step_result', { plan_id: id, step: 'a', result: 1 }]],
  'changes that a person wants': [[{ name: 'a', tool: 'brew', arguments: { leaf: 'x' }, review: { when: 'before' } }, { name: 'b' }], next,
    async (id) => ['submit_user_decision', { checkpoint_id: await sql(`SELECT checkpoint_id FROM stepwise.checkpoints WHERE plan_id = '${id}'`), decision: 'modify', feedback: 'Not so' }]],
  'arguments': [[{ name: 'a', tool: 'theirs', arguments: { x: '${inputs.o.p}', y: 1 } }, { name: 'b' }], next],
  'a value in instructions': [[{ name: 'a', instructions: 'See ${inputs.o.p}' }, { name: 'b' }], next],
  'a condition': [[{ name: 'a', condition: '${inputs.o} > 1' }, { name: 'b' }], next],
  'a dependency': [[{ name: 'z' }, { name: 'a', arguments: { x: '${steps.z.outputs.n}' } }], fail('z'), next],
  'a tool that failed': [[{ name: 'a', tool: 'brew', arguments: { leaf: 'none' } }, { name: 'b' }], run],
  'a tool that failed last': [[{ name: 'a', tool: 'brew', arguments: { leaf: 'none' } }], run],
  'a tool of the client that failed': [[{ name: 'a', tool: 'theirs' }, { name: 'b' }], next, fail('a'), run],
  'a tool of the client': [[{ name: 'a', tool: 'theirs', arguments: { x: 1 } }, { name: 'b' }], run],
  'the agent': [[{ name: 'a', instructions: 'Think' }, { name: 'b' }], run],
  'nobody': [[{ name: 'a', instructions: 'Think' }]],
  'the database': [[{ name: 'a', tool: 'brew', arguments: { leaf: 'x' } }]],
  'a worker': [[{ name: 'a', dependsOn: [] }, { name: 'b', dependsOn: ['a'] }], (id) => ['get_next_step', { plan_id: id, worker: 'anna' }]],
  'a claim that stalled': [[{ name: 'a', stallAfter: '1 microsecond', dependsOn: [] }, { name: 'b', dependsOn: ['a'] }], (id) => ['get_next_step', { plan_id: id, worker: 'anna' }]],
  'a nested plan': [[{ name: 'tea', workflow: 'tea' }, { name: 'b' }], run],
};

// Make a plan that waits.
export async function reach(session, [steps, ...calls]) {
  const id = (await session.tool('create_plan', { name: 'followed', goal: 'g', inputs: { o: {} }, steps, on_failure: 'stop' })).planId;
  for (const call of calls) await session.tool(...await call(id));
  return id;
}
