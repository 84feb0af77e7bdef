//! redis-rs. Argument: sync or sync-protocol-3 for `Connection`, async-manager or
//! async-manager-protocol-3 for `ConnectionManager` on tokio, cluster for the `ClusterConnection`
//! of tokio.

use redis::aio::ConnectionManager;
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::{Client, Cmd, Connection, FromRedisValue, Pipeline, RedisError, RedisResult, Value};
use std::io::BufRead;
use std::time::Duration;

/// For a reply to WAIT; the default is 500 ms.
const PATIENCE: Duration = Duration::from_secs(30);

/// What all kinds of connection can do.
trait Line {
    fn ask(&mut self, cmd: &Cmd) -> RedisResult<Value>;
    fn ask_all(&mut self, pipeline: &Pipeline) -> RedisResult<Vec<Value>>;
    /// Makes a broken connection good again, where the library does not.
    fn renew(&mut self);
}

struct Blocking {
    client: Client,
    connection: Connection,
}

impl Line for Blocking {
    fn ask(&mut self, cmd: &Cmd) -> RedisResult<Value> {
        cmd.query(&mut self.connection)
    }
    fn ask_all(&mut self, pipeline: &Pipeline) -> RedisResult<Vec<Value>> {
        pipeline.query(&mut self.connection)
    }
    fn renew(&mut self) {
        if let Ok(fresh) = self.client.get_connection() {
            self.connection = fresh;
        }
    }
}

struct Managed {
    runtime: tokio::runtime::Runtime,
    manager: ConnectionManager,
}

impl Line for Managed {
    fn ask(&mut self, cmd: &Cmd) -> RedisResult<Value> {
        self.runtime.block_on(cmd.query_async(&mut self.manager))
    }
    fn ask_all(&mut self, pipeline: &Pipeline) -> RedisResult<Vec<Value>> {
        self.runtime.block_on(pipeline.query_async(&mut self.manager))
    }
    fn renew(&mut self) {}
}

struct Clustered {
    runtime: tokio::runtime::Runtime,
    nodes: ClusterConnection,
}

impl Line for Clustered {
    /// The first argument decides where a command goes: of DMLOCK, its ttl.
    fn ask(&mut self, cmd: &Cmd) -> RedisResult<Value> {
        self.runtime.block_on(cmd.query_async(&mut self.nodes))
    }
    /// One by one: a pipeline goes to one node.
    fn ask_all(&mut self, pipeline: &Pipeline) -> RedisResult<Vec<Value>> {
        pipeline.cmd_iter().map(|cmd| self.runtime.block_on(cmd.query_async(&mut self.nodes))).collect()
    }
    fn renew(&mut self) {}
}

fn connect(kind: &str, address: &str, password: Option<&str>) -> RedisResult<Box<dyn Line>> {
    let credentials = password.map(|p| format!(":{p}@")).unwrap_or_default();
    let protocol = if kind.ends_with("protocol-3") { "?protocol=resp3" } else { "" };
    if kind == "cluster" {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let client = ClusterClient::builder(vec![format!("redis://{address}/")]).response_timeout(PATIENCE).build()?;
        let nodes = runtime.block_on(client.get_async_connection())?;
        return Ok(Box::new(Clustered { runtime, nodes }));
    }
    let client = Client::open(format!("redis://{credentials}{address}/{protocol}"))?;
    if kind.starts_with("sync") {
        let connection = client.get_connection()?;
        return Ok(Box::new(Blocking { client, connection }));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let config = redis::aio::ConnectionManagerConfig::new().set_response_timeout(Some(PATIENCE));
    let manager = runtime.block_on(client.get_connection_manager_with_config(config))?;
    Ok(Box::new(Managed { runtime, manager }))
}

type Outcome<T = ()> = Result<T, String>;

fn told(error: RedisError) -> String {
    error.to_string()
}

fn check(holds: bool, why: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(why()) }
}

struct Story {
    kind: String,
    key: String,
    line: Option<Box<dyn Line>>,
    token: String,
    fence: i64,
}

impl Story {
    fn line(&mut self) -> &mut dyn Line {
        self.line.as_mut().expect("connected").as_mut()
    }

    fn ask(&mut self, args: &[&str]) -> RedisResult<Value> {
        let cmd = command(args);
        self.line().ask(&cmd)
    }

    fn expect(&mut self, args: &[&str], wanted: Value) -> Outcome {
        let got = self.ask(args).map_err(told)?;
        check(got == wanted, || format!("{args:?}: got {got:?}, wanted {wanted:?}"))
    }

    fn grant(&mut self, ttl: i64) -> Outcome {
        let key = self.key.clone();
        self.granted(ttl, &["DLOCK", &key, &ttl.to_string()])
    }

    fn granted(&mut self, ttl: i64, args: &[&str]) -> Outcome {
        let got = self.ask(args).map_err(told)?;
        let (token, validity, fence) = <(String, i64, i64)>::from_redis_value(got).map_err(|e| e.to_string())?;
        check(token.len() == 27 && validity > 0 && validity <= ttl && fence > 1 << 50, || format!("grant {token} {validity} {fence}"))?;
        (self.token, self.fence) = (token, fence);
        Ok(())
    }

    fn connect(&mut self) -> Outcome<bool> {
        self.line = Some(connect(&self.kind, &env("REDLOCKD_ADDR"), None).map_err(told)?);
        self.expect(&["ECHO", "hello"], bulk("hello")).map(|_| true)
    }

    fn ping(&mut self) -> Outcome<bool> {
        self.expect(&["PING"], Value::SimpleString("PONG".into()))?;
        let info = String::from_redis_value(self.ask(&["CLIENT", "INFO"]).map_err(told)?).map_err(|e| e.to_string())?;
        let resp = info.split("resp=").nth(1).and_then(|r| r.chars().next()).ok_or(info)?;
        println!("protocol {resp}");
        Ok(true)
    }

    fn password(&mut self) -> Outcome<bool> {
        let Ok(password) = std::env::var("REDLOCKD_PASSWORD") else {
            println!("skip password the daemon has none");
            return Ok(false);
        };
        let address = env("REDLOCKD_PASSWORD_ADDR");
        connect(&self.kind, &address, Some(&password)).map_err(told)?.ask(&command(&["PING"])).map_err(told)?;
        match connect(&self.kind, &address, Some("wrong")) {
            Ok(_) => Err("a wrong password is not refused".into()),
            Err(e) => {
                let text = e.to_string();
                check(text.contains("WRONGPASS") || text.contains("uthentication"), || text.clone()).map(|_| true)
            }
        }
    }

    fn dlock(&mut self) -> Outcome<bool> {
        self.grant(30000).map(|_| true)
    }

    fn taken(&mut self) -> Outcome<bool> {
        let key = self.key.clone();
        self.expect(&["DLOCK", &key, "30000"], Value::Nil).map(|_| true)
    }

    fn dunlock(&mut self) -> Outcome<bool> {
        let (key, token) = (self.key.clone(), self.token.clone());
        self.expect(&["DUNLOCK", &key, "not-the-token"], Value::Int(0))?;
        self.expect(&["DUNLOCK", &key, &token], Value::Int(1)).map(|_| true)
    }

    fn dextend(&mut self) -> Outcome<bool> {
        let before = self.fence;
        self.grant(20000)?;
        let (key, token, fence) = (self.key.clone(), self.token.clone(), self.fence);
        check(fence > before, || format!("the fence does not rise: {before}, {fence}"))?;
        let validity = self.ask(&["DEXTEND", &key, &token, "40000"]).map_err(told)?;
        check(matches!(validity, Value::Int(30001..=40000)), || format!("validity {validity:?}"))?;
        self.expect(&["DEXTEND", &key, "not-the-token", "40000"], Value::Nil)?;
        self.expect(&["DUNLOCK", &key, &token], Value::Int(1)).map(|_| true)
    }

    fn dnextid(&mut self) -> Outcome<bool> {
        let key = self.key.clone();
        let mut next = || self.ask(&["DNEXTID", &key]).and_then(|v| Ok(i64::from_redis_value(v)?)).map_err(told);
        let (first, second) = (next()?, next()?);
        check(0 < first && first < second, || format!("{first}, then {second}")).map(|_| true)
    }

    fn error(&mut self) -> Outcome<bool> {
        let key = self.key.clone();
        match self.ask(&["DLOCK", &key, "5"]) {
            Ok(got) => return Err(format!("a ttl of 5 ms gives {got:?}")),
            Err(e) => check(e.to_string().contains("ttl '5'") && !e.is_io_error(), || format!("error {e}"))?,
        }
        self.expect(&["PING"], Value::SimpleString("PONG".into())).map(|_| true)
    }

    fn pipeline(&mut self) -> Outcome<bool> {
        let grants = self.hundred("DLOCK", &["30000", "TOKEN", "interop-token"])?;
        for grant in grants {
            let (token, ..) = <(String, i64, i64)>::from_redis_value(grant).map_err(|e| e.to_string())?;
            check(token == "interop-token", || token.clone())?;
        }
        let released = self.hundred("DUNLOCK", &["interop-token"])?;
        check(released == vec![Value::Int(1); 100], || format!("{released:?}")).map(|_| true)
    }

    fn hundred(&mut self, word: &str, rest: &[&str]) -> Outcome<Vec<Value>> {
        let mut pipeline = redis::pipe();
        for i in 0..100 {
            pipeline.cmd(word).arg(format!("{}:{i}", self.key)).arg(rest);
        }
        let replies = self.line().ask_all(&pipeline).map_err(told)?;
        check(replies.len() == 100, || format!("{} replies", replies.len()))?;
        Ok(replies)
    }

    fn dmlock(&mut self) -> Outcome<bool> {
        let keys = [format!("{}:a", self.key), format!("{}:b", self.key)];
        self.granted(30000, &["DMLOCK", "30000", "2", &keys[0], &keys[1]])?;
        let token = self.token.clone();
        self.expect(&["DMUNLOCK", &token, "2", &keys[0], &keys[1]], Value::Int(2)).map(|_| true)
    }

    fn wait_turn(&mut self) -> Outcome<bool> {
        self.grant(100)?;
        let key = self.key.clone();
        self.granted(30000, &["DLOCK", &key, "30000", "WAIT", "20000"])?;
        let token = self.token.clone();
        self.expect(&["DUNLOCK", &key, &token], Value::Int(1)).map(|_| true)
    }

    /// Accepts errors of the connection until the daemon is back, or the others of a cluster are found.
    fn reconnect(&mut self) -> Outcome<bool> {
        wait(&std::env::var("REDLOCKD_OUTAGE").unwrap_or("restart".into()))?;
        for _ in 0..200 {
            if self.pipeline().is_ok() {
                break;
            }
            self.line().renew();
            std::thread::sleep(Duration::from_millis(50));
        }
        self.grant(30000)?;
        let (key, token) = (self.key.clone(), self.token.clone());
        self.expect(&["DUNLOCK", &key, &token], Value::Int(1)).map(|_| true)
    }

    fn close(&mut self) -> Outcome<bool> {
        self.line = None;
        wait("gone").map(|_| true)
    }
}

fn command(args: &[&str]) -> Cmd {
    let mut cmd = redis::cmd(args[0]);
    cmd.arg(&args[1..]);
    cmd
}

fn bulk(text: &str) -> Value {
    Value::BulkString(text.into())
}

fn env(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}

/// Has the driver do something.
fn wait(what: &str) -> Outcome {
    println!("wait {what}");
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).map_err(|e| e.to_string())?;
    check(answer.trim() == what, || format!("the driver did not answer {what}"))
}

fn main() {
    println!("library {}", version());
    let kind = std::env::args().nth(1).expect("the kind of connection");
    let mut story = Story { kind, key: env("REDLOCKD_KEY"), line: None, token: String::new(), fence: 0 };
    type Step = fn(&mut Story) -> Outcome<bool>;
    let steps: [(&str, Step); 14] = [
        ("connect", Story::connect), ("ping", Story::ping), ("password", Story::password), ("dlock", Story::dlock),
        ("taken", Story::taken), ("dunlock", Story::dunlock), ("dextend", Story::dextend), ("dnextid", Story::dnextid),
        ("error", Story::error), ("pipeline", Story::pipeline),
        ("dmlock", Story::dmlock), ("wait", Story::wait_turn), ("reconnect", Story::reconnect), ("close", Story::close),
    ];
    for (name, step) in steps {
        match step(&mut story) {
            Ok(true) => println!("ok {name}"),
            Ok(false) => {}
            Err(why) => {
                println!("fail {name} {}", why.replace('\n', " "));
                std::process::exit(1);
            }
        }
    }
}

/// The version that was locked and compiled in.
fn version() -> &'static str {
    let lock = include_str!("../Cargo.lock");
    lock.split("name = \"redis\"\nversion = \"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or("unknown")
}
