# redis-rb.
require 'redis'

KEY = ENV.fetch('REDLOCKD_KEY')
$stdout.sync = true

def check(holds, why)
  raise why unless holds
end

def same(got, wanted)
  check(got == wanted, "got #{got.inspect}, wanted #{wanted.inspect}")
end

def wait(what)
  puts "wait #{what}"
  same($stdin.gets&.chomp, what)
end

def connect_to(address, options = {})
  host, port = address.split(':')
  Redis.new(host: host, port: port.to_i, **options)
end

# [token, validity, fence] of a grant.
def grant(ttl)
  reply = $redis.call('DLOCK', KEY, ttl)
  check(reply.is_a?(Array) && reply.size == 3, "a grant has three elements: #{reply.inspect}")
  token, validity, fence = reply
  check(token.is_a?(String) && token.bytesize == 27, "token #{token}")
  check(validity.is_a?(Integer) && validity.between?(1, ttl), "validity #{validity}")
  check(fence.is_a?(Integer) && fence > 2**50, "fence #{fence}")
  reply
end

def hundred(word, *rest)
  $redis.pipelined { |p| 100.times { |i| p.call(word, "#{KEY}:#{i}", *rest) } }
end

STEPS = {
  'connect' => lambda {
    $redis = connect_to(ENV.fetch('REDLOCKD_ADDR'))
    same($redis.echo('hello'), 'hello')
  },
  'ping' => lambda {
    same($redis.ping, 'PONG')
    puts "protocol #{$redis.call('CLIENT', 'INFO')[/resp=([23])/, 1]}"
  },
  'password' => lambda {
    unless ENV['REDLOCKD_PASSWORD']
      puts 'skip password the daemon has none'
      next :skipped
    end
    right = connect_to(ENV.fetch('REDLOCKD_PASSWORD_ADDR'), password: ENV['REDLOCKD_PASSWORD'])
    same(right.ping, 'PONG')
    right.close
    begin
      connect_to(ENV.fetch('REDLOCKD_PASSWORD_ADDR'), password: 'wrong').ping
    rescue Redis::BaseError => e
      check(e.message =~ /WRONGPASS|NOAUTH/, "a wrong password gives #{e}")
      next
    end
    raise 'a wrong password is not refused'
  },
  'dlock' => -> { $grant = grant(30_000) },
  'taken' => -> { same($redis.call('DLOCK', KEY, 30_000), nil) },
  'dunlock' => lambda {
    same($redis.call('DUNLOCK', KEY, 'not-the-token'), 0)
    same($redis.call('DUNLOCK', KEY, $grant[0]), 1)
  },
  'dextend' => lambda {
    token, _, fence = grant(20_000)
    check(fence > $grant[2], "the fence does not rise: #{$grant[2]}, #{fence}")
    validity = $redis.call('DEXTEND', KEY, token, 40_000)
    check(validity.between?(30_001, 40_000), "validity #{validity}")
    same($redis.call('DEXTEND', KEY, 'not-the-token', 40_000), nil)
    same($redis.call('DUNLOCK', KEY, token), 1)
  },
  'dnextid' => lambda {
    first, second = Array.new(2) { $redis.call('DNEXTID', KEY) }
    check(first.positive? && second > first, "#{first}, then #{second}")
  },
  'error' => lambda {
    begin
      $redis.call('DLOCK', KEY, 5)
    rescue Redis::CommandError => e
      check(e.message.start_with?("ERR ttl '5'"), "error #{e}")
      same($redis.ping, 'PONG')
      next
    end
    raise 'a ttl of 5 ms is accepted'
  },
  'pipeline' => lambda {
    same(hundred('DLOCK', 30_000, 'TOKEN', 'interop-token').map(&:first), ['interop-token'] * 100)
    same(hundred('DUNLOCK', 'interop-token'), [1] * 100)
  },
  'reconnect' => lambda {
    wait 'restart'
    200.times do
      break if $redis.ping
    rescue Redis::BaseConnectionError
      sleep 0.05
    end
    same($redis.call('DUNLOCK', KEY, grant(30_000)[0]), 1)
  },
  'close' => lambda {
    $redis.close
    wait 'gone'
  }
}.freeze

puts "library #{Redis::VERSION}"
STEPS.each do |step, play|
  puts "ok #{step}" unless play.call == :skipped
rescue StandardError => e
  puts "fail #{step} #{e.class} #{e.message.tr("\n", ' ')}"
  exit 1
end
