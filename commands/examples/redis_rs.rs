//! redis-rs: one UPDATE under a lock. Run: cargo run -- 127.0.0.1:7379
use redis::{cmd, Client, Connection};
use std::error::Error;
use std::time::{Duration, Instant};

const UPDATE: &str = "UPDATE invoices SET state = 'sent', fence = $1 WHERE id = 7 AND fence <= $1";

fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:7379".into());
    // HOLD needs one connection that is never opened anew: a Connection, not a ConnectionManager.
    let mut locks = Client::open(format!("redis://{address}/"))?.get_connection()?;
    locks.set_read_timeout(Some(Duration::from_secs(70)))?; // longer than the WAIT (60 s)
    let request = ["invoice:7", "30000", "WAIT", "60000", "HOLD", "600000"];
    let granted: Option<(String, i64, i64)> = cmd("DLOCK").arg(&request).query(&mut locks)?;
    let (token, validity, fence) = granted.ok_or("another client still holds the lock")?;
    println!("granted fence {fence}, validity {validity} ms");
    let done = send_invoice(&mut locks, &token, fence);
    let released: i64 = cmd("DUNLOCK").arg(&["invoice:7", &token]).query(&mut locks)?; // also after an error
    done?;
    if released != 1 {
        return Err("the lock was over before its release".into());
    }
    println!("released {released}");
    Ok(())
}

fn send_invoice(locks: &mut Connection, token: &str, fence: i64) -> Result<(), Box<dyn Error>> {
    let sent = Instant::now();
    let confirmed: Option<u64> = cmd("DEXTEND").arg(&["invoice:7", token, "30000"]).query(locks)?; // after a WAIT
    let validity = confirmed.ok_or("the lock was lost")?;
    println!("confirmed validity {validity} ms");
    if sent.elapsed() >= Duration::from_millis(validity) {
        return Err("the validity is over".into()); // longer work sends DEXTEND again before that
    }
    // With postgres: db.execute(UPDATE, &[&fence])? is 0: a later holder has already written.
    println!("update {UPDATE} with fence {fence}");
    Ok(())
}
