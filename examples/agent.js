// Work on a plan until it has ended: node agent.js PLAN_ID WORKER. Each of several workers has a name of its own.
// They connect to DATABASE_URL, or by PGHOST, PGDATABASE and so on. Behind a pooler, LISTEN_URL leads past it.
const { setTimeout: sleep } = require('timers/promises');
const { Client } = require('pg');
const ENDED = ['plan_complete', 'plan_failed', 'plan_cancelled'];

// Put your work here. Return the result, anything that JSON can hold. An exception fails the step.
async function work(step) {
  console.log('doing', step.name, step.instructions, step.arguments);
  return { ok: true };
}

// Call a function of stepwise by named arguments. Repeat it after a serialization failure or a deadlock.
async function call(client, name, args) {
  const named = Object.keys(args).map((key, i) => `${key} => $${i + 1}`);
  try {
    return (await client.query(`SELECT stepwise.${name}(${named}) AS answer`, Object.values(args))).rows[0].answer;
  } catch (error) {
    if (!['40001', '40P01'].includes(error.code)) throw error;
    await sleep(Math.random() * 100);
    return call(client, name, args);
  }
}

// Do a step while heartbeats extend its lease. Submit the result, and return the next answer, if there is one.
async function perform(client, step, worker, lease, work) {
  const claim = { step_id: step.stepId, attempt: step.attempt, worker };
  const beat = () => call(client, 'heartbeat', { ...claim, extend: `${lease} s` }).catch(console.error);
  const heart = setInterval(beat, (lease * 1000) / 3);
  const told = await Promise.resolve(step).then(work).then((result) => JSON.stringify(result ?? null)).then(
    (result) => ['advance', { ...claim, result, lease: `${lease} s` }],
    (error) => ['fail_step', { ...claim, error: String(error) }]).finally(() => clearInterval(heart));
  return call(client, ...told).then((answer) => answer.next, (error) => {
    if (!['SW003', 'SW012'].includes(error.code)) throw error;
    console.log('the step is no longer ours, its result is dropped:', error.message);
  });
}

// Do what there is to do. While there is nothing, wait for a change, or as long as the answer says.
async function drive(plan, worker, doWork = work, lease = 30, poll = 5000) {
  const client = new Client(process.env.DATABASE_URL);
  const listener = new Client(process.env.LISTEN_URL ?? process.env.DATABASE_URL);
  let change = new AbortController();
  listener.on('notification', () => change.abort());
  await Promise.all([client.connect(), listener.connect()]);
  await listener.query('LISTEN stepwise');
  for (;;) {
    change = new AbortController();
    let answer = await call(client, 'get_next_step', { plan_id: plan, worker, lease: `${lease} s` });
    while (answer?.status === 'step_ready') answer = await perform(client, answer, worker, lease, doWork);
    if (ENDED.includes(answer?.status)) return Promise.all([client.end(), listener.end()]).then(() => answer);
    if (!answer) continue;
    console.log(answer.status, answer.message, answer.nextCall);
    await sleep(Math.min(answer.retryAfterMs ?? poll, poll), null, { signal: change.signal }).catch(() => {});
  }
}

module.exports = { call, drive };
if (require.main === module) drive(process.argv[2], process.argv[3]).then(console.log);
