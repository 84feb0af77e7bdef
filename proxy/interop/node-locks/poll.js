// redlock 5 that has to take a lock which others keep busy, over REDLOCKD_ADDR: one server, or several with a
// comma between. It prints how many ms each acquire took, until its standard input ends.
'use strict';
const fs = require('fs');
const path = require('path');
const Redis = require('ioredis');
const { default: Redlock } = require('redlock5');

const clients = process.env.REDLOCKD_ADDR.split(',').map((address) => {
  const [host, port] = address.split(':');
  return new Redis({ host, port: Number(port) });
});
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const { version } = JSON.parse(fs.readFileSync(path.join(path.dirname(require.resolve('redlock5')), '..', '..', 'package.json')));

async function poll() {
  const redlock = new Redlock(clients); // 10 tries, 200 ms apart, and then again
  redlock.on('error', () => {});
  for (;;) {
    const began = Date.now();
    let lock;
    while (!lock) lock = await redlock.acquire([process.env.REDLOCKD_KEY], 10000).catch(() => null);
    console.log('took', Date.now() - began);
    await pause(20);
    await lock.release().catch(() => {});
    await pause(20);
  }
}

console.log('library', version);
process.stdin.on('end', () => process.exit(0)).resume();
poll();
