# redlock-rb, unmodified, that takes the daemon for one Redis. No registry of a
# bare machine has it: recorded/redlock-rb.txt is what it sends here. With the
# gem at hand: REDLOCKD_ADDR=host:port REDLOCKD_KEY=interop ruby locks.rb
require 'redis-client'
require 'redlock'
require 'redlock/version'

$stdout.sync = true
URL = "redis://#{ENV.fetch('REDLOCKD_ADDR')}".freeze
KEY = ENV.fetch('REDLOCKD_KEY')

def say(*words)
  puts words.join(' ').tr("\n", ' ')
end

def check(holds, why)
  raise why unless holds
end

def ask(what)
  say 'wait', what
  check $stdin.gets.to_s.strip == what, "the driver did not answer #{what}"
end

# A client has a connection of its own, which it makes when it first needs one.
# Its 100 ms for an answer are too short on a busy machine.
def client
  redis = RedisClient.config(url: URL, timeout: 5).new_client
  [Redlock::Client.new([redis], retry_count: 0), redis]
end

def story(one, two)
  lock = one.lock("#{KEY}:a", 20_000)
  check lock, 'it is not taken'
  say 'ok acquire'
  check !two.lock("#{KEY}:a", 20_000), 'it is taken twice'
  say 'ok contention'
  check one.lock("#{KEY}:a", 25_000, extend: lock), 'it is not extended'
  check one.get_remaining_ttl_for_lock(lock) > 20_000, 'its lease has not changed'
  check !two.lock("#{KEY}:a", 20_000), 'it is taken twice'
  say 'ok extend'
  one.unlock(lock)
  lock = two.lock("#{KEY}:a", 20_000)
  check lock, 'it is not released'
  two.unlock(lock)
  say 'ok release'
  expiry(one, two)
  say 'ok expiry'
  lock = one.lock("#{KEY}:c", 20_000)
  ask 'kill'
  check !two.lock("#{KEY}:c", 20_000), 'it is taken twice'
  check one.lock("#{KEY}:c", 25_000, extend: lock), 'it is not extended'
  one.unlock(lock)
  check two.lock("#{KEY}:c", 20_000), 'it is not taken with a master less'
  say 'ok killed'
end

# The second client tries until the first one's lease is over.
def expiry(one, two)
  late = one.lock("#{KEY}:b", 1000)
  check late, 'it is not taken'
  check !one.lock("#{KEY}:b", 1000, extend: { value: 'somebody' }, extend_only_if_locked: true), 'a stranger extends it'
  taken = nil
  100.times { break if (taken = two.lock("#{KEY}:b", 20_000)) || !sleep(0.1) }
  check taken, 'it does not expire'
  one.unlock(late)
  check two.valid_lock?(taken), 'a stale release has freed the lock'
  two.unlock(taken)
end

begin
  say 'library', Redlock::VERSION
  (one, first), (two, second) = client, client
  story(one, two)
  [first, second].each(&:close)
  ask 'gone'
  say 'ok close'
rescue StandardError => e
  warn e.full_message
  say 'fail', 'redlock-rb', e.inspect
  exit 1
end
