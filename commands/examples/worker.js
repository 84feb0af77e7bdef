// node-redis: work with fail-over over all workers. Run: node worker.js 127.0.0.1:7379
const { createClient } = require('redis');

const url = `redis://${process.argv[2] ?? '127.0.0.1:7379'}`;
const locks = createClient({ url, socket: { socketTimeout: 70000, reconnectStrategy: false } }); // longer than the WAIT
locks.on('error', (error) => console.error(error.message));

// Does the work, or waits until another worker has done it. Returns the result in both cases. When a worker dies, the
// next attempt starts after timeout ms. After max attempts there is none.
async function once(key, timeout, max, work) {
  for (;;) {
    const [state, ...rest] = await locks.sendCommand(['DWORK', key, `${timeout}`, 'MAX', `${max}`, 'WAIT', '60000']);
    if (state === 'done') return rest[1]; // [attempt, result]
    if (state === 'exhausted') throw new Error(`no attempt of ${max} at ${key} succeeded`);
    if (state === 'running') continue; // the wait is over
    const [attempt, token, , fence, last] = rest;
    const sent = performance.now();
    const validity = await locks.sendCommand(['DWORKEXTEND', key, token, `${timeout}`]); // confirms it after a WAIT
    if (validity === null) continue; // another worker has taken over
    try {
      const result = await work({ attempt, fence, last: last === 1, stopAt: sent + validity });
      const mine = await locks.sendCommand(['DWORKDONE', key, token, 'RESULT', result]);
      if (mine === 1) return result;
    } catch (error) {
      console.log(`attempt ${attempt} failed: ${error.message}`);
      await locks.sendCommand(['DWORKFAIL', key, token]); // the next attempt may start at once
    }
  }
}

// Longer work sends DWORKEXTEND before stopAt. The work must not begin anything after that time.
async function report({ attempt, fence }) {
  console.log(`attempt ${attempt} with fence ${fence}`);
  if (attempt === 1) throw new Error('no paper');
  return 's3://reports/2026-11';
}

async function main() {
  await locks.connect();
  console.log('done', await once('report:2026-11', 20000, 3, report));
  console.log('done before', await once('report:2026-11', 20000, 3, report)); // what every other worker gets
}

main().finally(() => locks.isOpen && locks.destroy());
