import { copyContainer } from "../resources/objectNames.ts"
import type { WatchedPod } from "../resources/watched.ts"

/** The commits that the pod copies to that claim, or has copied. */
const copiesOf = ({ spec }: WatchedPod, claim: string): ReadonlyArray<string> =>
  spec?.volumes?.some(({ name, persistentVolumeClaim }) => name === "weights" && persistentVolumeClaim?.claimName === claim)
    ? (spec.initContainers?.find(({ name }) => name === copyContainer)?.args ?? []).flatMap((word) => /^--(?:adapter-)?commit=(.*)$/.exec(word)?.[1] ?? [])
    : []

/** The characters of a commit that identify it. */
const enough = 12

/**
 * The copies on a claim that existing pods use, for `seatrial copy-weights`: the time of the observation, then the
 * commits.
 */
export const copiesInUse = (pods: ReadonlyArray<WatchedPod>, claim: string, now: number): string => {
  const commits = new Set(pods.flatMap((pod) => copiesOf(pod, claim).map((commit) => commit.slice(0, enough))))
  return [now, ...[...commits].sort()].join(" ")
}
