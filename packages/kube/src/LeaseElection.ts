import { monotonicMillis, monotonicMillisUnsafe } from "@seatrial/domain"
import { Clock, DateTime, Duration, Effect, Option, Random } from "effect"
import { fenceWrites } from "./fenceWrites.ts"
import { KubeClient } from "./KubeClient.ts"
import { kubeMetrics } from "./metrics.ts"
import { Lease } from "./resources.ts"

export interface LeaseElectionOptions {
  readonly name: string
  readonly namespace: string
  /** Unique identity of this candidate, also across restarts. */
  readonly identity: string
  /** How long other candidates wait after the last observed change of the lease before they take it. Default 15 s. */
  readonly leaseDuration?: Duration.Input
  /** How long a leader continues without a successful renewal; shorter than `leaseDuration`. Default 10 s. */
  readonly renewDeadline?: Duration.Input
  /** Time between two attempts. Default 2 s. */
  readonly retryPeriod?: Duration.Input
}

/**
 * The last observed lease, and the time of the observation on the local monotonic clock. The times in the lease come
 * from another machine's clock.
 */
interface Observation {
  readonly lease: Lease
  readonly at: number
}

const microTime = Effect.map(DateTime.now, (now) => DateTime.formatIso(now).replace("Z", "000Z"))

/**
 * The holder is considered alive only if the fields that it writes change, not if anything else in the object changes.
 */
const sameRecord = (one: Lease, other: Lease) =>
  one.spec?.holderIdentity === other.spec?.holderIdentity &&
  one.spec?.renewTime === other.spec?.renewTime &&
  one.spec?.leaseTransitions === other.spec?.leaseTransitions &&
  one.metadata.uid === other.metadata.uid

/** A candidate with all its options in milliseconds. */
interface Candidate {
  readonly client: KubeClient["Service"]
  readonly name: string
  readonly namespace: string
  readonly identity: string
  readonly leaseDuration: number
  readonly renewDeadline: number
  readonly retryPeriod: number
}

const candidateOf = Effect.fnUntraced(function* ({ identity, name, namespace, ...timing }: LeaseElectionOptions) {
  const leaseDuration = Duration.toMillis(timing.leaseDuration ?? "15 seconds")
  const renewDeadline = Duration.toMillis(timing.renewDeadline ?? "10 seconds")
  const retryPeriod = Duration.toMillis(timing.retryPeriod ?? "2 seconds")
  if (!(leaseDuration > renewDeadline && renewDeadline > retryPeriod)) {
    return yield* Effect.die(new Error("a lease election needs leaseDuration > renewDeadline > retryPeriod"))
  }
  const candidate: Candidate = { client: yield* KubeClient, name, namespace, identity, leaseDuration, renewDeadline, retryPeriod }
  return candidate
})

/** The fields of a lease that this candidate takes or renews. */
const claimOf = ({ identity, leaseDuration }: Candidate, before: Lease | undefined, time: string) => {
  const { acquireTime, holderIdentity, leaseTransitions } = before?.spec ?? {}
  const isRenewal = holderIdentity === identity
  const transitions = leaseTransitions ?? 0
  return {
    holderIdentity: identity,
    leaseDurationSeconds: Math.max(1, Math.ceil(leaseDuration / 1000)),
    acquireTime: isRenewal ? (acquireTime ?? time) : time,
    renewTime: time,
    leaseTransitions: before === undefined || isRenewal ? transitions : transitions + 1
  }
}

/** Whether another candidate may still hold an observed lease. */
const isHeldByOther = ({ identity }: Candidate, { at, lease }: Observation, now: number): boolean => {
  const { holderIdentity, leaseDurationSeconds } = lease.spec ?? {}
  const holder = holderIdentity ?? ""
  // A released lease has a duration of one second. Otherwise the holder's own lease duration applies.
  return holder !== "" && holder !== identity && now < at + (leaseDurationSeconds ?? 0) * 1000
}

/** The lease as one candidate sees and changes it. */
const makeLeaseAccess = (candidate: Candidate) => {
  const { client, identity, name, namespace, renewDeadline } = candidate
  const label = `lease ${namespace}/${name}`
  let observation: Observation | undefined

  const observe = (lease: Lease, at: number) => {
    observation = observation !== undefined && sameRecord(observation.lease, lease) ? { lease, at: observation.at } : { lease, at }
  }
  const isHeld = () => observation?.lease.spec?.holderIdentity === identity

  const read = Effect.gen(function* () {
    const stored = yield* client.get(Lease, name, namespace)
    const now = yield* monotonicMillis
    if (Option.isNone(stored)) observation = undefined
    else observe(stored.value, now)
  })

  /** Writes this identity into the lease. Returns false if another candidate holds it. */
  const attempt = Effect.gen(function* () {
    if (!isHeld()) yield* read
    const before = observation
    if (before !== undefined && isHeldByOther(candidate, before, yield* monotonicMillis)) return false
    const ours = claimOf(candidate, before?.lease, yield* microTime)
    const written =
      before === undefined
        ? yield* client.create(Lease, { metadata: { name, namespace }, spec: ours })
        : // Includes the observed version: if two candidates see the same expiry, one of them gets a conflict.
          yield* client.update(Lease, { ...before.lease, spec: { ...before.lease.spec, ...ours } })
    observe(written, yield* monotonicMillis)
    return true
  })

  return {
    isHeld,
    /**
     * `attempt` with errors as values. After a conflict or a lost response, the lease is read again before anything is
     * concluded.
     */
    settled: attempt.pipe(
      Effect.catch((error) =>
        Effect.gen(function* () {
          if (error.reason !== "Conflict") yield* Effect.logWarning(`${label}: ${error.message}`)
          yield* read
          return undefined
        }).pipe(Effect.catch((error) => Effect.as(Effect.logDebug(`${label}: ${error.message}`), undefined)))
      )
    ),
    release: Effect.gen(function* () {
      if (!isHeld() || observation === undefined) return
      const time = yield* microTime
      const free = { ...observation.lease.spec, holderIdentity: "", leaseDurationSeconds: 1, acquireTime: time, renewTime: time }
      yield* client.update(Lease, { ...observation.lease, spec: free })
    }).pipe(
      Effect.timeout(Math.min(renewDeadline, 3000)),
      Effect.catch((error) => Effect.logWarning(`${label} was not released: ${error.message}`)),
      Effect.ensuring(Effect.sync(() => (observation = undefined)))
    )
  }
}
type LeaseAccess = ReturnType<typeof makeLeaseAccess>

/** Waits until this candidate holds the lease. Returns the time before the successful attempt was sent. */
const acquire = Effect.fnUntraced(function* ({ renewDeadline, retryPeriod }: Candidate, { settled }: LeaseAccess) {
  while (true) {
    const sentAt = yield* monotonicMillis
    const acquired = yield* Effect.timeoutOption(settled, renewDeadline)
    if (Option.isSome(acquired) && acquired.value === true) return sentAt
    // Random delays, so that candidates that start together do not keep colliding.
    yield* Effect.sleep(retryPeriod * (1 + 1.2 * (yield* Random.next)))
  }
})

/**
 * Renews the lease until it is lost and returns the reason. The deadline counts from the time before the last
 * successful renewal was sent, so the clocks of other candidates started later. `confirm` gets the end of the confirmed
 * leadership in monotonic milliseconds.
 */
const keep = Effect.fnUntraced(function* (candidate: Candidate, { isHeld, settled }: LeaseAccess, acquiredAt: number, confirm: (until: number) => void) {
  const { name, namespace, renewDeadline, retryPeriod } = candidate
  let renewedAt = acquiredAt
  while (true) {
    const leadsUntil = renewedAt + renewDeadline
    confirm(leadsUntil)
    const left = leadsUntil - (yield* monotonicMillis)
    if (left <= 0) return "it could not be renewed in time"
    const sentAt = yield* Effect.andThen(Effect.sleep(Math.min(retryPeriod, left)), monotonicMillis)
    const remaining = leadsUntil - sentAt
    if (remaining <= 0) continue
    const renewed = yield* Effect.timeoutOption(settled, remaining)
    const isRenewed = Option.isSome(renewed) && renewed.value === true
    yield* kubeMetrics.renewals.update({ name, namespace, outcome: isRenewed ? "renewed" : "failed" }, 1)
    if (isRenewed) renewedAt = sentAt
    else if (!isHeld()) return "another holder has it"
  }
})

/**
 * Runs `whileLeader` while this candidate holds the lease, with the timing of Kubernetes' own components (client-go
 * `leaderelection`).
 * It waits until the lease is free, released or expired, then runs the effect and keeps renewing the lease. It
 * interrupts the effect if another holder appears, or if no renewal has succeeded within `renewDeadline`. After a loss
 * it waits for the lease again, so it ends only when the effect ends or by interruption. At the end, a lease still held
 * is released after the effect has stopped, so that the next candidate starts immediately. Errors of the API server are
 * logged and retried.
 * The `KubeClient` of the effect rejects writes after `renewDeadline`. A process that was suspended continues at the
 * same place, and its timers fire late.
 */
const run = Effect.fnUntraced(function* <A, E, R>(options: LeaseElectionOptions, whileLeader: Effect.Effect<A, E, R>) {
  const candidate = yield* candidateOf(options)
  const { client, identity, name, namespace, renewDeadline } = candidate
  const leading = (leads: 0 | 1) => kubeMetrics.leader.update({ name, namespace }, leads)
  yield* leading(0)
  const lease = makeLeaseAccess(candidate)
  /** End of the leadership that the API server has confirmed, in monotonic milliseconds. */
  let leadsUntil = 0
  const confirm = (until: number) => {
    leadsUntil = until
  }
  const clock = yield* Clock.Clock
  const fenced = fenceWrites(client, () => monotonicMillisUnsafe(clock) < leadsUntil)

  const term = Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const acquiredAt = yield* restore(acquire(candidate, lease))
      confirm(acquiredAt + renewDeadline)
      yield* leading(1)
      yield* Effect.logInfo(`${identity} holds lease ${namespace}/${name}`)
      const lost = Effect.flatMap(keep(candidate, lease, acquiredAt, confirm), (reason) =>
        Effect.as(Effect.logWarning(`${identity} lost lease ${namespace}/${name}: ${reason}`), Option.none<A>())
      )
      return yield* restore(Effect.raceFirst(Effect.asSome(Effect.provideService(whileLeader, KubeClient, fenced)), lost)).pipe(
        Effect.ensuring(Effect.andThen(leading(0), lease.release))
      )
    })
  )

  while (true) {
    const ended = yield* term
    if (Option.isSome(ended)) return ended.value
  }
})

export const LeaseElection = { run }
