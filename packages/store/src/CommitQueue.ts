import { Effect, Exit } from "effect"

/** Called once with the result of a row's commit. */
export type Settled = (exit: Exit.Exit<void>) => void

/** A row that waits for its commit. */
export interface Pending<Row> {
  readonly row: Row
  readonly settled: Settled
  /** Arrival time on the monotonic clock. */
  readonly since: number
}

export interface CommitQueueOptions<Row> {
  /** Maximum number of rows in a transaction. */
  readonly batch: number
  /**
   * Maximum number of concurrent transactions. More than one runs only if many rows wait, or if the first row has
   * waited for long.
   */
  readonly committers: number
  /**
   * Whether a caller waits for the row. Other rows do not start a transaction: they join a transaction of other rows,
   * and get a separate one only after a long wait.
   */
  readonly urgent: (row: Row) => boolean
  /** Maximum queue length for this row. If the queue is full, the row is rejected with a defect. */
  readonly capacity: (row: Row) => number
}

/** Number of waiting rows that justify a second concurrent transaction. */
const secondTransactionRows = 128

/**
 * How long a row waits before it gets a transaction to itself, milliseconds: for the current transaction to end, or, if
 * it is not urgent, for a transaction to join.
 */
const maxWaitMillis = 5

/** The rows that wait for a commit, and the committers that wait for rows. */
export class CommitQueue<Row> {
  readonly #options: CommitQueueOptions<Row>
  #waiting: Array<Pending<Row>> = []
  /** Number of urgent rows in the queue. */
  #urgent = 0
  /** Idle committers; each takes the rows that are waiting when it is woken. */
  readonly #idle: Array<() => void> = []
  #isWaking = false
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(options: CommitQueueOptions<Row>) {
    this.#options = options
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0
  }

  /** Accepts a row, or settles it with a defect. */
  readonly enter = (row: Row, settled: Settled) => {
    if (this.#isClosed) return settled(Exit.die(new Error("The group commit is closed.")))
    if (this.#waiting.length >= this.#options.capacity(row)) return settled(Exit.die(new Error("Too many rows are waiting to be committed.")))
    this.#waiting.push({ row, settled, since: performance.now() })
    if (this.#options.urgent(row)) this.#urgent++
    if (this.#isWaking || this.#idle.length === 0) return
    if (!this.#isDue(this.#options.committers - this.#idle.length)) return this.wakeCommitter()
    // Waits until all rows of this turn are queued: they share the commit.
    this.#isWaking = true
    setImmediate(this.#wakeQueued)
  }

  /** Removes the rows of the next transaction from the queue. */
  take(): ReadonlyArray<Pending<Row>> {
    const batch = this.#waiting
    this.#waiting = batch.splice(this.#options.batch)
    this.#urgent = this.#waiting.reduce((count, { row }) => (this.#options.urgent(row) ? count + 1 : count), 0)
    return batch
  }

  /** Completes when a committer should start a transaction. */
  readonly next = Effect.callback<void>((resume) => {
    if (this.#isDue(this.#options.committers - 1 - this.#idle.length)) return resume(Effect.void)
    const wake = () => resume(Effect.void)
    this.#idle.push(wake)
    // Rows that arrived while all committers were busy are still waiting.
    this.wakeCommitter()
    return Effect.sync(() => {
      // A committer that was already woken is no longer in the list.
      const at = this.#idle.indexOf(wake)
      if (at !== -1) this.#idle.splice(at, 1)
    })
  })

  /**
   * Wakes a committer for the waiting rows, now or after the maximum wait. If none is idle, the next idle committer
   * checks the queue.
   */
  wakeCommitter(): void {
    const [first] = this.#waiting
    if (first === undefined || this.#isWaking || this.#idle.length === 0) return
    if (this.#isDue(this.#options.committers - this.#idle.length)) this.#idle.pop()?.()
    else this.#timer ??= setTimeout(this.#wakeAfterTimer, Math.max(1, Math.ceil(first.since + maxWaitMillis - performance.now())))
  }

  /** Rejects all later rows. */
  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  /** Whether another concurrent transaction should start. */
  #isDue(running: number): boolean {
    const [first] = this.#waiting
    if (first === undefined) return false
    return (running === 0 && this.#urgent > 0) || this.#waiting.length >= secondTransactionRows || performance.now() - first.since >= maxWaitMillis
  }

  readonly #wakeAfterTimer = () => {
    this.#timer = undefined
    this.wakeCommitter()
  }

  readonly #wakeQueued = () => {
    this.#isWaking = false
    // A busy committer may already have taken the rows.
    this.wakeCommitter()
  }
}
