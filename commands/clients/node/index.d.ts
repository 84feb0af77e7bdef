import type { RedisClientOptions } from 'redis';

/** Times are in milliseconds. */
export interface LockOptions extends RedisClientOptions {
  /** How long the lock lasts without an extension: 30000. */
  ttl?: number;
  /** How long to wait for the lock: 60000; 0 is one try. */
  wait?: number;
  /** How long the work may hold the lock: 600000. */
  longest?: number;
}

/** A lock until its disposal. */
export interface Held extends AsyncDisposable {
  /** Larger than that of every earlier holder: give it to the resource. */
  readonly fence: number;
  /** Aborted with LockLost when the lock is lost, also if redlockd sends no reply. */
  readonly signal: AbortSignal;
  /** Throws LockLost if the lock is lost. */
  check(): void;
  /** Makes the lock last at least ttl from now: how long it is valid. After an ErrorReply, for example NOQUORUM, it is as it was. */
  extend(ttl?: number): Promise<number>;
}

/** Another client held the lock during the whole wait. */
export class LockTaken extends Error {}
/** The lock was lost, or its validity is over: the work must stop. */
export class LockLost extends Error {}

/** Holds a lock until its disposal. Throws LockTaken or LockLost. */
export function lock(key: string, options?: LockOptions): Promise<Held>;
