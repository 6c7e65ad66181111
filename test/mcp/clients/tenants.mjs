// Of what another tenant has, every method says the same as of what does not exist, and nothing of it shows.

import { check, connect, finish, is, sql } from './lib.mjs';

const TASKS = 'io.modelcontextprotocol/tasks';
const accept = { action: 'accept', content: { response: 'yes', decision: 'approve' } };

// An id that does not exist, of the same tenant as another one.
const absent = (id) => `${id.slice(0, 20)}000${id.slice(23)}`;

async function use(kind) {
  const name = (what) => `${kind}, another tenant: ${what}`;
  const options = { capabilities: { extensions: { [TASKS]: {} } }, answer: async () => accept };
  const theirs = await connect(kind, { user: 'theirs', ...options });
  const ours = await connect(kind, { user: 'ours', ...options });
  const quiet = await connect(kind, { user: 'theirs' }); // it cannot be asked
  const plan = (await quiet.tool('start_workflow', { workflow: 'secret_flow', inputs: { code: 'hunter2' } })).planId;
  await quiet.tool('get_next_step', { plan_id: plan });
  await quiet.tool('store_artifact', { plan_id: plan, name: 'secret_document', content: 'hidden words' });
  const [step, checkpoint] = (await sql(`SELECT step_id || ' ' || id FROM stepwise.checkpoint WHERE plan_id = '${plan}'`)).split(' ');
  const names = { PLAN: plan, STEP: step, CHECKPOINT: checkpoint, FLOW: 'secret_flow', TOOL: 'secret_tool', DOCUMENT: 'secret_document' };
  const others = { PLAN: absent(plan), STEP: absent(step), CHECKPOINT: absent(checkpoint), FLOW: 'absent_flow', TOOL: 'absent_tool', DOCUMENT: 'absent_document' };

  // What we get for it, with the names that we asked for in capitals again.
  const answer = async (method, params, values) => {
    const filled = (text) => Object.entries(values).reduce((made, [key, value]) => made.replaceAll(key, value), text);
    const got = await ours.ask(method, JSON.parse(filled(JSON.stringify(params)))).catch(({ code, message, data }) => ({ code, message, data }));
    const shown = Object.entries(values).reduce((made, [key, value]) => made.replaceAll(value, key), JSON.stringify(got));
    return shown.replaceAll(/20\d\d-\d\d-\d\dT[\d:.]+Z/g, 'TIME');
  };
  const call = (tool, args, more = {}) => ['tools/call', { name: tool, arguments: args, ...more }];
  const answers = { inputResponses: { CHECKPOINT: accept } };
  const uri = 'stepwise://plan/PLAN';
  const completion = (ref, argument, context) => ['completion/complete', { ref, argument: { name: argument, value: '' }, ...(context && { context: { arguments: context } }) }];
  const requests = [
    ['resources/read', { uri }], ['resources/read', { uri: `${uri}/markdown` }], ['resources/read', { uri: `${uri}/output` }], ['resources/read', { uri: `${uri}/artifact/DOCUMENT` }],
    ['tasks/get', { taskId: 'PLAN' }], ['tasks/cancel', { taskId: 'PLAN' }], ['stepwise/work', { taskId: 'PLAN' }],
    ['stepwise/changes', { state: { uris: { [uri]: '' }, tasks: { PLAN: '' } } }],
    completion({ type: 'ref/resource', uri: 'stepwise://plan/{planId}' }, 'planId'),
    completion({ type: 'ref/resource', uri: 'stepwise://plan/{planId}/artifact/{name}' }, 'name', { planId: 'PLAN' }),
    completion({ type: 'ref/prompt', name: 'FLOW' }, 'code'),
    ['prompts/get', { name: 'FLOW', arguments: { code: 'x' } }], ['prompts/get', { name: 'tea', requestState: 'PLAN', ...answers }],
    call('get_next_step', { plan_id: 'PLAN' }), call('get_next_step', { plan_id: 'PLAN' }, answers), call('run', { plan_id: 'PLAN' }), call('run', { plan_id: 'PLAN' }, answers),
    call('run', { plan_id: 'PLAN' }, { task: {} }), call('submit_step_result', { step_id: 'STEP', result: 1 }), call('submit_step_result', { plan_id: 'PLAN', step: 'ask', result: 1 }),
    call('update_step', { step_id: 'STEP', action: 'skip' }), call('request_user_review', { step_id: 'STEP', summary: 'x' }),
    call('submit_user_decision', { checkpoint_id: 'CHECKPOINT', response: 'x' }), call('modify_plan', { plan_id: 'PLAN', action: 'cancel' }),
    ...['status', 'context', 'why', 'tree'].map((view) => call('get_plan_status', { plan_id: 'PLAN', view })), call('get_plan_status', { plan_id: 'PLAN', step: 'ask' }),
    call('store_artifact', { plan_id: 'PLAN', name: 'x', content: 'x' }), call('search_artifacts', { plan_id: 'PLAN', name: 'DOCUMENT' }),
    call('start_workflow', { workflow: 'FLOW', inputs: { code: 'x' } }), call('TOOL', { leaf: 'x' }), call('handoff', { plan_id: 'PLAN' }), call('verify_audit', { plan_id: 'PLAN' }),
    call('brew_ours', { leaf: 'x' }, { _meta: { 'stepwise/taskId': 'PLAN' } }),
    ours.modern ? ['tasks/update', { taskId: 'PLAN', ...answers }] : ['tasks/result', { taskId: 'PLAN', ...answers }],
    ...(ours.modern ? [] : [['resources/subscribe', { uri }], ['resources/unsubscribe', { uri }]]),
  ];

  await check(name('it is not there'), async () => {
    for (const [method, params] of requests) {
      const got = await answer(method, params, names);
      is([method, params, got], [method, params, await answer(method, params, others)]);
      is([method, params, /hunter2|hidden|Secret/.test(got)], [method, params, false]);
    }
  });
  await check(name('no list and no search has it'), async () => {
    const lists = ['tools/list', 'prompts/list', 'resources/list', ...(ours.modern ? [] : ['tasks/list'])].map((method) => [method, {}]);
    const searches = [call('get_plan_status', {}), call('get_plan_status', { query: 'secret' }), call('search_artifacts', { query: 'words' }), call('start_workflow', {})];
    for (const [method, params] of [...lists, ...searches]) is([method, params, /secret_|hunter2|hidden/.test(JSON.stringify(await ours.ask(method, params)))], [method, params, false]);
  });
  await check(name('nothing has happened to it, and we hear nothing of it'), async () => {
    is(await sql(`SELECT status || ' ' || (SELECT count(*) FROM stepwise.checkpoint WHERE plan_id = '${plan}') FROM stepwise.plan WHERE id = '${plan}'`), 'awaiting_review 1');
    ours.heard.length = 0;
    if (ours.modern) {
      ours.ask('subscriptions/listen', { notifications: { resourceSubscriptions: [`stepwise://plan/${plan}`], taskIds: [plan], promptsListChanged: true, toolsListChanged: true, resourcesListChanged: true } }).catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
    await theirs.tool('submit_user_decision', { checkpoint_id: checkpoint, response: 'yes' });
    await sql(`SELECT stepwise.call('define_workflow', '{"definition": {"name": "secret_${Date.now()}", "steps": [{"name": "a"}]}}', 'theirs')`);
    await new Promise((resolve) => setTimeout(resolve, 1000));
    is(ours.heard.map((message) => message.method), ours.modern ? ['notifications/subscriptions/acknowledged'] : []);
  });
  for (const session of [theirs, ours, quiet]) await session.close();
}

await sql(`BEGIN; SELECT stepwise.enter_tenant('theirs'); SELECT stepwise.register_tool('secret_tool', 'brew(jsonb)', expose => true),
  stepwise.define_workflow('{"name": "secret_flow", "inputs": {"code": {"type": "string"}}, "steps": [{"name": "ask", "prompt": "Secret?"}]}'); COMMIT`);
await sql(`BEGIN; SELECT stepwise.enter_tenant('ours'); SELECT stepwise.register_tool('brew_ours', 'brew(jsonb)', expose => true); COMMIT`);
for (const kind of ['sdk 1.x', 'client 2.x pinned']) await use(kind);
await finish();
