// Plans with a separate reviewer: the connection of the agent that works can neither decide nor be asked, by no way that a client has.
// The connection of a reviewer can.

import { KINDS, check, connect, failure, finish, is, like, sql } from './lib.mjs';

const TASKS = 'io.modelcontextprotocol/tasks';
const approve = { action: 'accept', content: { decision: 'approve' } };

// A plan of two steps, the first with a gate.
async function gated(session, name, when, step = { instructions: 'Write it' }) {
  const first = { name: 'write', ...step, review: { when, summary: `Is ${name} good?` } };
  const plan = await session.tool('create_plan', { name, goal: name, separate_reviewer: true, steps: [first, { name: 'print', instructions: 'Print it' }] });
  return plan.planId;
}

const stands = (id) => sql(`SELECT status FROM stepwise.step WHERE plan_id = '${id}' AND name = 'write'`);
const checkpoint = (id) => sql(`SELECT checkpoint_id FROM stepwise.checkpoints WHERE plan_id = '${id}'`);
const decider = (id) => sql(`SELECT actor FROM stepwise.audit WHERE plan_id = '${id}' AND event = 'user_reviewed'
  AND detail ->> 'action' <> 'review_requested'`);

async function use(kind) {
  const name = (what) => `${kind}, separate reviewer: ${what}`;
  const capabilities = { extensions: { [TASKS]: {} } };
  const agent = await connect(kind, { user: 'agent', answer: async () => approve });
  const reviewer = await connect(kind, { user: 'reviewer', answer: async () => approve });

  await check(name('the agent is not asked about its work'), async () => {
    const id = await gated(agent, 'after', 'after');
    await agent.tool('get_next_step', { plan_id: id });
    is((await agent.tool('submit_step_result', { plan_id: id, step: 'write', result: 'a' })).next.status, 'awaiting_review');
    is((await agent.tool('get_next_step', { plan_id: id })).status, 'awaiting_review');
    is((await agent.tool('run', { plan_id: id })).task_status, 'input_required');
    is(agent.questions, []);
    is(await stands(id), 'awaiting_input');
  });

  await check(name('the agent cannot decide, skip, fail or change'), async () => {
    const id = await gated(agent, 'doors', 'after');
    await agent.tool('get_next_step', { plan_id: id });
    await agent.tool('submit_step_result', { plan_id: id, step: 'write', result: 'a' });
    const answers = { [await checkpoint(id)]: approve };
    for (const decision of ['approve', 'modify', 'reject', 'skip']) {
      like(await agent.error('submit_user_decision', { checkpoint_id: await checkpoint(id), decision, feedback: 'x', decided_by: 'reviewer' }), /^SW014: /);
    }
    for (const action of ['skip', 'fail']) like(await agent.error('update_step', { plan_id: id, step: 'write', action, ...(action === 'fail' && { error: 'x' }) }), /^SW014: /);
    like(await agent.error('modify_plan', { plan_id: id, action: 'fail_step', params: { step: 'write', reason: 'x' } }), /^SW/);
    like(await agent.error('modify_plan', { plan_id: id, action: 'update_step', params: { step: 'write', review: null } }), /^SW/);
    like(await agent.error('modify_plan', { plan_id: id, action: 'remove_step', params: { step: 'write' } }), /^SW/);
    // answers to a question that was never asked
    for (const [tool, args] of [['get_next_step', { plan_id: id }], ['run', { plan_id: id }], ['submit_step_result', { plan_id: id, step: 'write', result: 'a' }]]) {
      const forged = await agent.call(tool, args, { params: { inputResponses: answers } }).catch((error) => ({ isError: true, content: [{ text: error.message }] }));
      is([forged.isError, /SW014/.test(forged.content[0].text)], [true, true]);
    }
    is(await stands(id), 'awaiting_input');
  });

  await check(name('the reviewer is asked, and decides'), async () => {
    const id = await gated(agent, 'asked', 'after');
    await agent.tool('get_next_step', { plan_id: id });
    await agent.tool('submit_step_result', { plan_id: id, step: 'write', result: 'a page' });
    reviewer.questions.length = 0;
    is((await reviewer.tool('get_next_step', { plan_id: id })).name, 'print');
    like(reviewer.questions.map((question) => question.message).join(), /^Is asked good\?[^]*"a page"/);
    is([await stands(id), await decider(id)], ['completed', 'reviewer']);
  });

  await check(name('the reviewer decides by the tool'), async () => {
    const id = await gated(agent, 'tool', 'before');
    is((await agent.tool('get_next_step', { plan_id: id })).status, 'awaiting_review');
    await reviewer.tool('submit_user_decision', { checkpoint_id: await checkpoint(id), decision: 'approve' });
    is(await decider(id), 'reviewer');
    is((await agent.tool('get_next_step', { plan_id: id })).name, 'write');
    is(agent.questions, []);
  });

  await check(name('who has worked on the step is no reviewer any more'), async () => {
    const id = await gated(agent, 'worked', 'after');
    reviewer.questions.length = 0;
    await reviewer.tool('get_next_step', { plan_id: id });
    is((await reviewer.tool('submit_step_result', { plan_id: id, step: 'write', result: 'a' })).next.status, 'awaiting_review');
    is(reviewer.questions, []);
    like(await reviewer.error('submit_user_decision', { checkpoint_id: await checkpoint(id), decision: 'approve' }), /^SW014: /);
    is(await stands(id), 'awaiting_input');
  });

  await check(name('a task of the agent asks nobody, and takes no answer'), async () => {
    const id = await gated(agent, 'task', 'before', { tool: 'brew', arguments: { leaf: 'assam' } });
    const working = await connect(kind, { user: 'agent', answer: async () => approve, capabilities });
    await working.tool('run', { plan_id: id });
    is(await stands(id), 'awaiting_input');
    const answers = { [await checkpoint(id)]: approve };
    const task = await working.ask('tasks/get', { taskId: id });
    is([task.status, Object.keys(task.inputRequests ?? {})], ['input_required', []]);
    like((await failure(working.ask(working.modern ? 'tasks/update' : 'tasks/result', { taskId: id, inputResponses: answers }))).message, /SW014/);
    is([await stands(id), working.questions], ['awaiting_input', []]);
    await working.close();
  });

  await agent.close();
  await reviewer.close();
}

// --- a role that may not decide at all ------------------------------------------

const GATES = {
  'a gate before a tool': [{ name: 'write', tool: 'brew', arguments: { leaf: 'x' }, review: { when: 'before', summary: 'Go?' } }, { name: 'print' }],
  'a gate before': [{ name: 'write', review: { when: 'before', summary: 'Go?' } }, { name: 'print' }],
  'a gate after': [{ name: 'write', review: { when: 'after', summary: 'Go?' } }, { name: 'print' }],
  'a gate after a tool': [{ name: 'write', tool: 'brew', arguments: { leaf: 'x' }, review: { when: 'after', summary: 'Go?' } }, { name: 'print' }],
  'a prompt': [{ name: 'write', prompt: 'Sure?' }, { name: 'print' }],
};

async function hurry(kind) {
  const owner = await connect(kind);
  const worker = await connect(kind, { user: 'worker', answer: async () => approve, capabilities: { extensions: { [TASKS]: {} } } });
  for (const [gate, steps] of Object.entries(GATES)) {
    await check(`${kind}, without the right to decide: ${gate} has no other door`, async () => {
      const id = (await owner.tool('create_plan', { name: 'hurry', goal: 'g', steps })).planId;
      if (gate === 'a gate after') await worker.tool('get_next_step', { plan_id: id });
      if (gate === 'a gate after') await worker.tool('submit_step_result', { plan_id: id, step: 'write', result: 1 });
      else await worker.ask('tools/call', { name: 'get_next_step', arguments: { plan_id: id, run_tools: true } });
      const waiting = await checkpoint(id);
      const whole = () => sql(`SELECT string_agg(concat_ws(' ', name, status, result, review), ', ' ORDER BY step_order) FROM stepwise.step WHERE plan_id = '${id}'`);
      const before = await whole();
      const answers = { inputResponses: { [waiting]: { action: 'accept', content: { decision: 'approve', response: 'yes' } } } };
      const step = { plan_id: id, step: 'write' };
      const change = (action, params) => ['modify_plan', { plan_id: id, action, params }];
      const tries = [
        ['submit_user_decision', { checkpoint_id: waiting, decision: 'approve' }], ['submit_user_decision', { checkpoint_id: waiting, response: 'yes' }], ['resume', { checkpoint_id: waiting, response: 'yes' }],
        ['update_step', { ...step, action: 'skip' }], ['update_step', { ...step, action: 'fail', error: 'x' }], ['update_step', { ...step, action: 'release' }], ['update_step', { ...step, action: 'retry' }],
        ['submit_step_result', { ...step, result: 2 }], ['submit_step_result', { ...step, step: 'print', result: 2 }], ['record_tool_result', { plan_id: id, tool: 'brew', result: 2, step_name: 'write' }],
        change('remove_step', { step: 'write' }), change('update_step', { step: 'write', review: null }), change('reorder_steps', { steps: ['print', 'write'] }), change('fail_step', { step: 'write', reason: 'x' }),
        change('update_step_instructions', { step: 'print', instructions: 'x' }), change('add_steps', { steps: [{ name: 'other' }], after: 'write' }),
        ['get_next_step', { plan_id: id }, answers], ['run', { plan_id: id }, answers], ['submit_step_result', { ...step, result: 2 }, answers], ['request_user_review', { ...step, summary: 'x' }, answers],
        ['get_next_step', { plan_id: id, run_tools: true }], ['run', { plan_id: id }], ['brew', { leaf: 'x' }, { _meta: { 'stepwise/taskId': id } }], ['reclaim_stalled', { plan_id: id, older_than: '0 seconds' }],
        ['call', { function: 'resume', arguments: { checkpoint_id: waiting, response: 'yes' } }], ['mcp', { request: {} }], ['grant_agent', { role: 'worker' }], ['register_tool', { name: 'x' }], ['purge', { before: '2999-01-01' }],
      ].map(([name, args, more]) => ['tools/call', { name, arguments: args, ...more }]);
      const methods = [
        ['prompts/get', { name: 'tea', requestState: id, ...answers }], ['prompts/get', { name: 'tea', _meta: { 'stepwise/again': { plan: id } } }], ['stepwise/work', { taskId: id }],
        worker.modern ? ['tasks/update', { taskId: id, ...answers }] : ['tasks/result', { taskId: id, ...answers }],
      ];
      for (const [method, params] of [...tries, ...methods]) {
        await worker.ask(method, params).catch(() => {});
        is([params, await whole()], [params, before]);
      }
      is(worker.questions, []);
      is((await worker.client.listTools()).tools.some((tool) => tool.name === 'submit_user_decision'), false);
    });
  }
  await owner.close();
  await worker.close();
}

for (const kind of Object.keys(KINDS)) await use(kind);
for (const kind of ['sdk 1.x', 'client 2.x pinned']) await hurry(kind);
await finish();
