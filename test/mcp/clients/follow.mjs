// A model that only sees the listed tools, and does what answers tell it: every call that is named, in nextCall, alternatives, handoff or
// a hint, is one of a listed tool, with arguments of its schema. Made as it stands, it changes something.

import { check, connect, finish, is, like, sql } from './lib.mjs';
import { WAITS, next, reach } from './waits.mjs';

// --- calls that answers name ---------------------------------------------------

// The object at the beginning of a text.
function object(text) {
  for (let end = text.indexOf('}'); end >= 0; end = text.indexOf('}', end + 1)) {
    try { return JSON.parse(text.slice(0, end + 1)); } catch { /* it ends later */ }
  }
  throw new Error(`no object: ${text}`);
}

// The calls in a text: "Call TOOL with {…}", and "TOOL {…}" of these tools.
function mentioned(text, names) {
  return [...text.matchAll(/\b([a-z_]+)( with)? (?=\{)/g)].filter(([, name, has]) => has || names.includes(name))
    .map((found) => ({ function: found[1], arguments: object(text.slice(found.index + found[0].length)), tool: text.slice(0, found.index).endsWith('tool ') }))
    .filter((call) => !call.tool); // that is the client's own
}

// Fill in what is left open.
function fill(args) {
  const values = { decision: 'approve', result: 1, response: 'yes', content: 'text', attempt: 1, reason: 'because', error: 'no' };
  const filled = (key, value) => {
    if (key === 'params' && value.condition) return { ...value, condition: 'true' };
    if (key === 'params' && typeof value.arguments === 'string') return { ...value, arguments: { leaf: 'y' } };
    if (key === 'params' && value.instructions) return { ...value, instructions: 'Go' };
    return typeof value === 'string' && /[<|]/.test(value) ? values[key] ?? value : value;
  };
  return Object.fromEntries(Object.entries(args).map(([key, value]) => [key, filled(key, value)]));
}

// A call must be one of a listed tool, and have the arguments that its schema has.
function fits(call, tools) {
  const tool = tools.find((one) => one.name === call.function);
  if (!tool) throw new Error(`${JSON.stringify(call)} is no listed tool`);
  const unknown = Object.keys(call.arguments).filter((key) => !(key in tool.inputSchema.properties));
  const missing = tool.inputSchema.required.filter((key) => !(key in call.arguments));
  is([call, unknown, missing], [call, [], []]);
}

async function use(kind) {
  const session = await connect(kind, { user: 'agent' });
  const { tools } = await session.client.listTools();
  const names = tools.map((tool) => tool.name);

  // What is told about a plan: calls of which each helps by itself, and those of handoff, which are made one after the other.
  const told = async (id) => {
    const why = await session.tool('get_plan_status', { plan_id: id, view: 'why' });
    const context = await session.tool('get_plan_status', { plan_id: id, view: 'context' });
    const handoff = (await session.call('handoff', { plan_id: id })).content[0].text;
    is([handoff, /stepwise\./.test(JSON.stringify([why, context, handoff]))], [handoff, false]);
    const [, numbered, others] = /To continue:\n(.*?)(?:\n\n|$)(?:Or one of these instead:\n(.*?)(?:\n\n|$))?/s.exec(handoff) ?? [];
    const single = [why.nextCall, context.nextCall, ...(why.alternatives ?? []), ...mentioned(others ?? '', [])].filter(Boolean);
    return { series: mentioned(numbered ?? '', []), single: [...new Map(single.map((call) => [`${call.function} ${call.arguments.action}`, call])).values()] };
  };
  const follow = async (call) => {
    fits(call, tools);
    const answer = await session.call(call.function, fill(call.arguments));
    if (answer.isError) throw new Error(`${JSON.stringify(call)}: ${answer.content[0].text}`);
  };

  for (const [wait, way] of Object.entries(WAITS)) {
    // The calls that "choose" finds are made in a new plan, and must change something. Who waits for another worker asks again in vain.
    const changes = async (choose) => {
      const id = await reach(session, way);
      const entries = () => sql(`SELECT sum(audit_entries) FROM stepwise.plan WHERE root_id = '${id}'`);
      const before = await entries();
      const chosen = choose(await told(id));
      for (const call of chosen) await follow(call);
      if (wait !== 'a worker' && await entries() === before) throw new Error(`${JSON.stringify(chosen)} changes nothing`);
    };
    await check(`${kind}, waiting for ${wait}: what is named can be called, and helps`, async () => {
      const { single, series } = await told(await reach(session, way));
      is([single.length > 0, series.length > 0], [true, true]);
      for (let n = 0; n < single.length; n++) await changes((now) => [now.single[n]]);
      await changes((now) => now.series);
    });
  }

  // --- hints -------------------------------------------------------------------

  const hints = async (...errors) => {
    for (const [tool, args] of errors) {
      const text = await session.error(tool, args);
      like(text, /^[A-Z0-9]{5}: .*\nHINT: /s);
      is([text, /stepwise\.(?!reclaim_stalled|fork_plan|list_tools|grant_|set_variables|help)/.test(text)], [text, false]);
      for (const call of mentioned(text, names)) fits(call, tools);
    }
  };
  await check(`${kind}: hints name listed tools with their arguments`, async () => {
    const id = await reach(session, [[{ name: 'a' }, { name: 'b', review: { when: 'before' } }, { name: 'c', prompt: 'Sure?' }], next]);
    const done = await reach(session, [[{ name: 'a' }], next, (plan) => ['submit_step_result', { plan_id: plan, step: 'a', result: 1 }]]);
    const asked = await reach(session, WAITS['a prompt']);
    const checkpoint = await sql(`SELECT checkpoint_id FROM stepwise.checkpoints WHERE plan_id = '${asked}'`);
    const nothing = '00000000-0000-7000-8000-000000000001';
    await hints(
      ['get_next_step', { plan_id: nothing }], ['submit_step_result', { step_id: nothing, result: 1 }], ['submit_step_result', { plan_id: id, step: 'zzz', result: 1 }],
      ['submit_step_result', { plan_id: id, step: 'b', result: 1 }], ['submit_step_result', { plan_id: id, step: 'c', result: 1 }],
      ['submit_step_result', { plan_id: id, step: 'a', attempt: 7, result: 1 }], ['submit_step_result', { plan_id: done, step: 'a', result: 2 }],
      ['update_step', { plan_id: done, step: 'a', action: 'retry' }], ['update_step', { plan_id: done, step: 'a', action: 'fail', error: 'x' }],
      ['update_step', { plan_id: id, step: 'b', action: 'release' }], ['update_step', { plan_id: id, step: 'b', action: 'heartbeat' }],
      ['request_user_review', { plan_id: id, step: 'b', summary: 'x' }], ['request_user_review', { plan_id: done, step: 'a', summary: 'x' }],
      ['submit_user_decision', { checkpoint_id: nothing, decision: 'approve' }], ['submit_user_decision', { checkpoint_id: checkpoint, decision: 'approve' }],
      ['modify_plan', { plan_id: done, action: 'add_steps', params: { steps: [{ name: 'x' }] } }], ['modify_plan', { plan_id: id, action: 'remove_step', params: { step: 'a' } }],
      ['start_workflow', { workflow: 'none' }], ['start_workflow', { workflow: 'tea', inputs: { cups: 'many' } }], ['search_artifacts', { plan_id: id, name: 'none' }],
      ['create_plan', { name: 'x', goal: 'x', steps: [{ name: 'a', arguments: { x: '${steps.b.outputs}' } }] }], ['run', { plan_id: nothing }],
      ['modify_plan', { plan_id: done, action: 'cancel' }],
    );
  });
  await session.close();
}

for (const kind of ['sdk 1.x', 'client 2.x pinned']) await use(kind);
await finish();
