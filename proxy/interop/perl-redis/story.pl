# Redis.pm, with the commands that it does not know called as methods.
use strict;
use warnings;
use Redis;
use Time::HiRes 'sleep';

$| = 1;
my $key = $ENV{REDLOCKD_KEY};
my ($redis, $token, $fence);

sub check {
    my ($holds, $why) = @_;
    die "$why\n" unless $holds;
}

sub same {
    my ($got, $wanted) = map { $_ // '(nil)' } @_;
    check($got eq $wanted, "got $got, wanted $wanted");
}

sub wait_for {
    my ($what) = @_;
    print "wait $what\n";
    chomp(my $answer = <STDIN> // '');
    same($answer, $what);
}

# grant takes the lock of the story and gives its token and fence.
sub grant {
    my ($ttl) = @_;
    my $reply = $redis->dlock($key, $ttl);
    check(ref $reply eq 'ARRAY' && @$reply == 3, 'a grant has three elements');
    my ($token, $validity, $fence) = @$reply;
    check(length $token == 27, "token $token");
    check($validity > 0 && $validity <= $ttl, "validity $validity");
    check($fence > 2**50, "fence $fence");
    return ($token, $fence);
}

# hundred sends a hundred commands before it waits for the first reply.
sub hundred {
    my ($word, @rest) = @_;
    my @replies;
    for my $i (0 .. 99) {
        $redis->$word("$key:$i", @rest, sub { my ($reply, $error) = @_; push @replies, $error // $reply });
    }
    $redis->wait_all_responses;
    return @replies;
}

sub password {
    if (!defined $ENV{REDLOCKD_PASSWORD}) {
        print "skip password the daemon has none\n";
        return 'skipped';
    }
    my $address = $ENV{REDLOCKD_PASSWORD_ADDR};
    my $right = Redis->new(server => $address, password => $ENV{REDLOCKD_PASSWORD});
    same($right->ping, 'PONG');
    $right->quit;
    check(!eval { Redis->new(server => $address, password => 'wrong')->ping }, 'a wrong password is not refused');
    check($@ =~ /WRONGPASS|NOAUTH/, "a wrong password gives $@");
}

my @steps = (
    connect => sub {
        $redis = Redis->new(server => $ENV{REDLOCKD_ADDR}, reconnect => 10, every => 50_000);
        same($redis->echo('hello'), 'hello');
    },
    ping => sub {
        same($redis->ping, 'PONG');
        my ($resp) = $redis->client('INFO') =~ /resp=([23])/;
        print "protocol $resp\n";
    },
    password => \&password,
    dlock    => sub { ($token, $fence) = grant(30000) },
    taken    => sub { same($redis->dlock($key, 30000), undef) },
    dunlock  => sub {
        same($redis->dunlock($key, 'not-the-token'), 0);
        same($redis->dunlock($key, $token), 1);
    },
    dextend => sub {
        my ($token, $later) = grant(20000);
        check($later > $fence, "the fence does not rise: $fence, $later");
        my $validity = $redis->dextend($key, $token, 40000);
        check($validity > 30000 && $validity <= 40000, "validity $validity");
        same($redis->dextend($key, 'not-the-token', 40000), undef);
        same($redis->dunlock($key, $token), 1);
    },
    dnextid => sub {
        my ($first, $second) = ($redis->dnextid($key), $redis->dnextid($key));
        check($first > 0 && $second > $first, "$first, then $second");
    },
    error => sub {
        check(!eval { $redis->dlock($key, 5); 1 }, 'a ttl of 5 ms is accepted');
        check($@ =~ /ERR ttl '5'/, "error $@");
        same($redis->ping, 'PONG');
    },
    pipeline => sub {
        same(join(' ', map { $_->[0] } hundred('dlock', 30000, 'TOKEN', 'interop-token')), join(' ', ('interop-token') x 100));
        same(join(' ', hundred('dunlock', 'interop-token')), join(' ', (1) x 100));
    },
    reconnect => sub {
        wait_for('restart');
        for (1 .. 200) {
            last if eval { $redis->ping };
            sleep 0.05;
        }
        my ($token) = grant(30000);
        same($redis->dunlock($key, $token), 1);
    },
    close => sub {
        $redis->quit;
        wait_for('gone');
    },
);

print "library $Redis::VERSION\n";
while (my ($step, $play) = splice @steps, 0, 2) {
    my $outcome = eval { [$play->()] };
    if (!$outcome) {
        (my $why = $@) =~ tr/\n/ /;
        print "fail $step $why\n";
        exit 1;
    }
    print "ok $step\n" unless ($outcome->[-1] // '') eq 'skipped';
}
