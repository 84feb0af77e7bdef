# redis-rb: a lock with a queue over all clients, and what it shows. Run: ruby queued.rb 127.0.0.1:7379
require 'redis'

HOST, PORT = (ARGV[0] || '127.0.0.1:7379').split(':')

# FAIR grants the lock in the order of the requests. Times are in milliseconds.
def queued(key, ttl:, timeout:, meta:)
  # HOLD needs one connection that is never opened anew. Its read timeout is longer than the WAIT.
  locks = Redis.new(host: HOST, port: PORT.to_i, read_timeout: timeout / 1000 + 10, reconnect_attempts: 0)
  granted = locks.call('DLOCK', key, ttl, 'FAIR', 'WAIT', timeout, 'META', meta, 'HOLD', 600_000)
  raise "#{key}: the timeout is reached" if granted.nil?
  token, _validity, fence = granted
  sent = Process.clock_gettime(Process::CLOCK_MONOTONIC, :millisecond)
  validity = locks.call('DEXTEND', key, token, ttl) # confirms the lock after a WAIT
  raise "#{key}: the lock was lost" if validity.nil?
  yield fence, sent + validity, locks # longer work sends DEXTEND again before this time
ensure
  if token
    abort 'the lock was over before its release' if locks.call('DUNLOCK', key, token) != 1
    puts 'released 1'
  end
  locks&.close
end

# The holder, the time that is left, and the length of the queue.
def lock_info(locks, key)
  info = Hash[*locks.call('DINFO', key)]
  holders = info['holders'].map { |holder| Hash[*holder].slice('meta', 'ttl', 'client') }
  info.slice('state', 'waiters', 'queue').merge('holders' => holders)
end

queued('invoice:7', ttl: 30_000, timeout: 60_000, meta: 'worker-1') do |fence, _stop_at, locks|
  puts "granted fence #{fence}"
  info = lock_info(locks, 'invoice:7')
  puts "#{info['state']} by #{info['holders'][0]['meta']}, #{info['queue']} in the queue"
end
