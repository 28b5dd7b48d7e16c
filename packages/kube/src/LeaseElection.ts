import { Clock, DateTime, Duration, Effect, Option, Random } from "effect"
import { fenceWrites } from "./fenceWrites.ts"
import { KubeClient } from "./KubeClient.ts"
import { kubeMetrics } from "./metrics.ts"
import { monotonicMillis } from "./monotonicMillis.ts"
import { Lease } from "./resources.ts"

export interface LeaseElectionOptions {
  readonly name: string
  readonly namespace: string
  /** Of this candidate; unique, also over restarts. */
  readonly identity: string
  /** How long the others wait, since they last saw the lease change, before they take it. Default 15 s. */
  readonly leaseDuration?: Duration.Input
  /** How long a leader that cannot renew goes on; shorter than `leaseDuration`. Default 10 s. */
  readonly renewDeadline?: Duration.Input
  /** Between two attempts. Default 2 s. */
  readonly retryPeriod?: Duration.Input
}

/** The lease as last seen, and when that was on our own monotonic clock: the times written in it are another machine's. */
interface Observation {
  readonly lease: Lease
  readonly at: number
}

const microTime = Effect.map(DateTime.now, (now) => DateTime.formatIso(now).replace("Z", "000Z"))

/** A record is seen anew only when what its holder writes has changed, not when anything else in the object has. */
const sameRecord = (one: Lease, other: Lease) =>
  one.spec?.holderIdentity === other.spec?.holderIdentity &&
  one.spec?.renewTime === other.spec?.renewTime &&
  one.spec?.leaseTransitions === other.spec?.leaseTransitions &&
  one.metadata.uid === other.metadata.uid

/**
 * Runs `whileLeader` while this candidate holds the lease, with the arithmetic of Kubernetes' own components (client-go `leaderelection`).
 *
 * It waits until the lease is free, released or expired; runs the effect; renews meanwhile; and interrupts the effect when another holder shows, or when no
 * renewal has succeeded within `renewDeadline`. Then it stands again, so it ends only as the effect ends, or by interruption. However it ends, a lease still
 * held is released after the effect has stopped, so that the next candidate starts at once. What the API server refuses or fails is logged and tried again.
 *
 * The effect's own `KubeClient` writes nothing once `renewDeadline` has passed: a process that was stopped for a while goes on where it was, and its timers come late.
 */
const run = Effect.fnUntraced(function* <A, E, R>(options: LeaseElectionOptions, whileLeader: Effect.Effect<A, E, R>) {
  const client = yield* KubeClient
  const { name, namespace, identity } = options
  const leaseDuration = Duration.toMillis(options.leaseDuration ?? "15 seconds")
  const renewDeadline = Duration.toMillis(options.renewDeadline ?? "10 seconds")
  const retryPeriod = Duration.toMillis(options.retryPeriod ?? "2 seconds")
  if (!(leaseDuration > renewDeadline && renewDeadline > retryPeriod)) {
    return yield* Effect.die(new Error("a lease election needs leaseDuration > renewDeadline > retryPeriod"))
  }
  const labels = { name, namespace }
  const leading = (leads: 0 | 1) => kubeMetrics.leader.update(labels, leads)
  yield* leading(0)

  let seen: Observation | undefined
  /** Until when we lead by what the API server has answered; monotonic milliseconds. */
  let leadsUntil = 0
  const clock = yield* Clock.Clock
  const fenced = fenceWrites(client, () => Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n) < leadsUntil)

  const observe = (lease: Lease, at: number) => {
    seen = seen !== undefined && sameRecord(seen.lease, lease) ? { lease, at: seen.at } : { lease, at }
  }
  const held = () => seen?.lease.spec?.holderIdentity === identity

  const read = Effect.gen(function* () {
    const found = yield* client.get(Lease, name, namespace)
    const now = yield* monotonicMillis
    if (Option.isNone(found)) seen = undefined
    else observe(found.value, now)
  })

  /** Writes our name into the lease, unless another holds it: false then. */
  const attempt = Effect.gen(function* () {
    if (!held()) yield* read
    const before = seen
    const now = yield* monotonicMillis
    const holder = before?.lease.spec?.holderIdentity ?? ""
    // A released lease says one second; any other counts as long as its own holder promised.
    const promised = (before?.lease.spec?.leaseDurationSeconds ?? 0) * 1000
    if (before !== undefined && holder !== "" && holder !== identity && now < before.at + promised) return false
    const time = yield* microTime
    const ours = {
      holderIdentity: identity,
      leaseDurationSeconds: Math.max(1, Math.ceil(leaseDuration / 1000)),
      acquireTime: holder === identity ? (before?.lease.spec?.acquireTime ?? time) : time,
      renewTime: time,
      leaseTransitions: (before?.lease.spec?.leaseTransitions ?? 0) + (before === undefined || holder === identity ? 0 : 1)
    }
    const written =
      before === undefined
        ? yield* client.create(Lease, { metadata: { name, namespace }, spec: ours })
        : // With the version that was read: of two candidates that saw the same expiry, one gets a conflict.
          yield* client.update(Lease, { ...before.lease, spec: { ...before.lease.spec, ...ours } })
    observe(written, yield* monotonicMillis)
    return true
  })

  /** `attempt` whose failures are answers: after a conflict or a lost answer the lease is read again before anything is concluded. */
  const settled = attempt.pipe(
    Effect.catch((error) =>
      Effect.gen(function* () {
        if (error.reason !== "Conflict") yield* Effect.logWarning(`lease ${namespace}/${name}: ${error.message}`)
        yield* read
        return undefined
      }).pipe(Effect.catch((error) => Effect.as(Effect.logDebug(`lease ${namespace}/${name}: ${error.message}`), undefined)))
    )
  )

  const acquire = Effect.gen(function* () {
    while (true) {
      const sentAt = yield* monotonicMillis
      const acquired = yield* Effect.timeoutOption(settled, renewDeadline)
      if (Option.isSome(acquired) && acquired.value === true) return sentAt
      // Spread out, so that candidates that began together do not collide for ever.
      yield* Effect.sleep(retryPeriod * (1 + 1.2 * (yield* Random.next)))
    }
  })

  /** Ends when the lease is lost: with the reason. The deadline counts from before the last good renewal was sent, so the others' clocks started later. */
  const keep = Effect.fnUntraced(function* (acquiredAt: number) {
    let renewedAt = acquiredAt
    while (true) {
      leadsUntil = renewedAt + renewDeadline
      const left = leadsUntil - (yield* monotonicMillis)
      if (left <= 0) return "it could not be renewed in time"
      const sentAt = yield* Effect.andThen(Effect.sleep(Math.min(retryPeriod, left)), monotonicMillis)
      const remaining = leadsUntil - sentAt
      if (remaining <= 0) continue
      const renewed = yield* Effect.timeoutOption(settled, remaining)
      const done = Option.isSome(renewed) && renewed.value === true
      yield* kubeMetrics.renewals.update({ ...labels, outcome: done ? "renewed" : "failed" }, 1)
      if (done) renewedAt = sentAt
      else if (!held()) return "another holder has it"
    }
  })

  const release = Effect.gen(function* () {
    if (!held() || seen === undefined) return
    const time = yield* microTime
    const free = { ...seen.lease.spec, holderIdentity: "", leaseDurationSeconds: 1, acquireTime: time, renewTime: time }
    yield* client.update(Lease, { ...seen.lease, spec: free })
  }).pipe(
    Effect.timeout(Math.min(renewDeadline, 3000)),
    Effect.catch((error) => Effect.logWarning(`lease ${namespace}/${name} was not released: ${error.message}`)),
    Effect.ensuring(Effect.sync(() => (seen = undefined)))
  )

  const term = Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const acquiredAt = yield* restore(acquire)
      leadsUntil = acquiredAt + renewDeadline
      yield* leading(1)
      yield* Effect.logInfo(`${identity} holds lease ${namespace}/${name}`)
      const lost = Effect.flatMap(keep(acquiredAt), (reason) =>
        Effect.as(Effect.logWarning(`${identity} lost lease ${namespace}/${name}: ${reason}`), Option.none<A>())
      )
      return yield* restore(Effect.raceFirst(Effect.asSome(Effect.provideService(whileLeader, KubeClient, fenced)), lost)).pipe(
        Effect.ensuring(Effect.andThen(leading(0), release))
      )
    })
  )

  while (true) {
    const ended = yield* term
    if (Option.isSome(ended)) return ended.value
  }
})

export const LeaseElection = { run }
