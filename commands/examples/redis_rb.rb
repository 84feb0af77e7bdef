# redis-rb: one UPDATE under a lock. Run: ruby redis_rb.rb 127.0.0.1:7379
require 'redis'

UPDATE = "UPDATE invoices SET state = 'sent', fence = $1 WHERE id = 7 AND fence <= $1"

host, port = (ARGV[0] || '127.0.0.1:7379').split(':')
# HOLD needs one connection that is never opened anew: a Redis object of its own, without reconnect attempts.
# Its read timeout (70 s) is longer than the WAIT (60 s).
locks = Redis.new(host: host, port: port.to_i, read_timeout: 70, reconnect_attempts: 0)
begin
  granted = locks.call('DLOCK', 'invoice:7', 30_000, 'WAIT', 60_000, 'HOLD', 600_000)
  abort 'another client still holds the lock' if granted.nil?
  token, validity, fence = granted
  puts "granted fence #{fence}, validity #{validity} ms"
  sent = Process.clock_gettime(Process::CLOCK_MONOTONIC, :millisecond)
  validity = locks.call('DEXTEND', 'invoice:7', token, 30_000) # confirms the lock after a WAIT
  abort 'the lock was lost' if validity.nil?
  puts "confirmed validity #{validity} ms"
  stop_at = sent + validity # longer work sends DEXTEND again before this time
  abort 'the validity is over' if Process.clock_gettime(Process::CLOCK_MONOTONIC, :millisecond) >= stop_at
  # With pg: db.exec_params(UPDATE, [fence]).cmd_tuples; 0: a later holder has already written.
  puts "update #{UPDATE} with fence #{fence}"
ensure
  if token
    abort 'the lock was over before its release' if locks.call('DUNLOCK', 'invoice:7', token) != 1
    puts 'released 1'
  end
  locks.close
end
