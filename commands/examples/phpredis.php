<?php
// phpredis: one UPDATE under a lock. Run: php phpredis.php 127.0.0.1:7379
const UPDATE = "UPDATE invoices SET state = 'sent', fence = ? WHERE id = 7 AND fence <= ?";

[$host, $port] = explode(':', $argv[1] ?? '127.0.0.1:7379');
$locks = new Redis();
$locks->connect($host, (int) $port); // HOLD needs a connection that ends with its holder: never pconnect()
$locks->setOption(Redis::OPT_READ_TIMEOUT, 70); // seconds, longer than the WAIT (60 s)
$granted = $locks->rawCommand('DLOCK', 'invoice:7', 30000, 'WAIT', 60000, 'HOLD', 600000);
if ($granted === false) { // nil, or an error
    throw new RuntimeException($locks->getLastError() ?? 'another client still holds the lock');
}
[$token, $validity, $fence] = $granted;
try {
    echo "granted fence $fence, validity $validity ms\n";
    $sent = hrtime(true);
    $validity = $locks->rawCommand('DEXTEND', 'invoice:7', $token, 30000); // confirms the lock after a WAIT
    if ($validity === false) {
        throw new RuntimeException($locks->getLastError() ?? 'the lock was lost');
    }
    echo "confirmed validity $validity ms\n";
    $stopAt = $sent + $validity * 1_000_000; // longer work sends DEXTEND again before this time
    if (hrtime(true) >= $stopAt) {
        throw new RuntimeException('the validity is over');
    }
    // With PDO: $update->execute([$fence, $fence]); rowCount() is 0: a later holder has already written.
    echo 'update ', UPDATE, " with fence $fence\n";
} finally {
    if ($locks->rawCommand('DUNLOCK', 'invoice:7', $token) !== 1) {
        throw new RuntimeException($locks->getLastError() ?? 'the lock was over before its release');
    }
    echo "released 1\n";
    $locks->close();
}
