// The agent of examples/, with work that does what a test asks for: worker.js PLAN_ID WORKER LEASE POLL
// A worker named "victim" holds its first step until it is killed. A step can wait until there is a file.
const { existsSync } = require('fs');
const { setTimeout: sleep } = require('timers/promises');
const { drive } = require('../../examples/agent.js');

const [plan, worker, lease, poll] = process.argv.slice(2);

async function work(step) {
  if (worker === 'victim') {
    console.log('holding', step.name);
    await sleep(600000);
  }
  if (step.arguments.fails) throw new Error('no water');
  if (step.arguments.unfit) return 10n;
  while (step.arguments.until && !existsSync(step.arguments.until)) await sleep(50);
  await sleep((step.arguments.seconds ?? 0) * 1000);
  return { by: worker };
}

drive(plan, worker, work, Number(lease), Number(poll)).then((answer) => console.log(answer.status));
