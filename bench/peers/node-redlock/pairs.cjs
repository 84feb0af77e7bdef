// Uncontended pairs with node-redlock over ioredis, every caller on keys of its
// own. Arguments: the directory of node_modules, callers, seconds of warm-up,
// seconds of measurement, addresses of the masters.
'use strict'
const { createRequire } = require('node:module')
const [modules, callers, warmUp, span, ...addresses] = process.argv.slice(2)
const load = createRequire(modules + '/x')
const Redis = load('ioredis')
const Redlock = load('redlock').default

const ttl = 10000
const now = () => Number(process.hrtime.bigint()) / 1000
const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000))

const clients = addresses.map((address) => {
  const [host, port] = address.split(':')
  return new Redis({ host, port: Number(port) })
})
const redlock = new Redlock(clients, { retryCount: 0 })
redlock.on('error', () => {}) // counted where the acquire fails

let waits = []
let pairs = 0
let failed = 0
let ended = false

async function caller(number) {
  for (let turn = 0; !ended; turn++) {
    const began = now()
    try {
      const lock = await redlock.acquire([`bench:node:${number}:${turn % 16}`], ttl)
      waits.push(now() - began)
      await lock.release()
      pairs++
    } catch {
      failed++
    }
  }
}

function quantile(sorted, q) {
  return sorted.length ? sorted[Math.floor(q * (sorted.length - 1))] : 0
}

async function main() {
  const running = Array.from({ length: Number(callers) }, (_, number) => caller(number))
  await pause(Number(warmUp))
  process.stdout.write('begin\n')
  waits = []
  pairs = failed = 0
  const began = now()
  await pause(Number(span))
  const seconds = (now() - began) / 1e6
  const done = pairs
  const sorted = Float64Array.from(waits).sort()
  process.stdout.write(JSON.stringify({
    pairs: done, failed, seconds,
    p50: quantile(sorted, 0.5), p90: quantile(sorted, 0.9), p99: quantile(sorted, 0.99), p999: quantile(sorted, 0.999),
  }) + '\n')
  ended = true
  await Promise.all(running)
  await Promise.all(clients.map((client) => client.quit()))
}

main()
