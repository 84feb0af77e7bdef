// ioredis: one UPDATE under a lock. Run: node ioredis.js 127.0.0.1:7379
const Redis = require('ioredis');

const update = "UPDATE invoices SET state = 'sent', fence = $1 WHERE id = 7 AND fence <= $1";

// HOLD needs one connection that is never opened anew: a client of its own, without a retryStrategy.
// Its read timeout (70 s) is longer than the WAIT (60 s).
const locks = new Redis(`redis://${process.argv[2] ?? '127.0.0.1:7379'}`, { socketTimeout: 70000, retryStrategy: null });
locks.on('error', (error) => console.error(error.message));

async function sendInvoice() {
  const granted = await locks.call('DLOCK', 'invoice:7', 30000, 'WAIT', 60000, 'HOLD', 600000);
  if (granted === null) throw new Error('another client still holds the lock');
  const [token, validity, fence] = granted;
  try {
    console.log(`granted fence ${fence}, validity ${validity} ms`);
    const sent = performance.now();
    const confirmed = await locks.call('DEXTEND', 'invoice:7', token, 30000); // confirms the lock after a WAIT
    if (confirmed === null) throw new Error('the lock was lost');
    console.log(`confirmed validity ${confirmed} ms`);
    const stopAt = sent + confirmed; // longer work sends DEXTEND again before this time
    if (performance.now() >= stopAt) throw new Error('the validity is over');
    // With pg: const { rowCount } = await db.query(update, [fence]); 0 rows: a later holder has already written.
    console.log(`update ${update} with fence ${fence}`);
  } finally {
    const released = await locks.call('DUNLOCK', 'invoice:7', token);
    if (released !== 1) throw new Error('the lock was over before its release');
    console.log('released 1');
  }
}

sendInvoice().finally(() => locks.disconnect());
