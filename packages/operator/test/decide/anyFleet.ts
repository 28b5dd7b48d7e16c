import type { Run } from "@seatrial/store"
import { noGrowth, type ObservedEngine } from "../../src/observation/ObservedEngine.ts"
import { enginePodName } from "../../src/resources/objectNames.ts"
import { observed, podClass, run, withRevision } from "../observations.ts"
import { anyObservation } from "./anyObservation.ts"

const urlOf = (ordinal: number) => `http://127.0.1.${ordinal + 1}:8000`

/** Any state of one engine. */
const anyEngine = (draw: () => number, ordinal: number) => {
  const { seen } = anyObservation(draw)
  const name = enginePodName(run.id, ordinal)
  const pod = seen.pod === null ? null : { ...seen.pod, name, uid: `pod-${ordinal}`, merge: null, url: seen.pod.url === null ? null : urlOf(ordinal) }
  const boot = seen.boot === null ? null : { ...seen.boot, boot: `pod-${ordinal} 0` }
  const endpoints = draw() < 0.6 ? [{ url: draw() < 0.9 ? urlOf(ordinal) : "http://127.0.9.9:8000", pod: name, reachable: draw() < 0.6 }] : []
  const { admission, elsewhere, outdated, sameStart, withdrawnAt, work } = seen
  const ended = work.ended === null ? null : { ...work.ended, about: work.ended.about.replace("pod-1 0", `pod-${ordinal} 0`) }
  const requests = [null, 0, 3][Math.floor(draw() * 3)] ?? null
  const engine: ObservedEngine = { ordinal, pod, boot, admission, elsewhere, outdated, sameStart, withdrawnAt, work: { ...work, ended }, requests }
  return { engine, endpoints }
}

/** Any observation of a serving revision that has, or should have, several engines. */
export const anyFleet = (draw: () => number): ReturnType<typeof anyObservation> => {
  const { now, seen } = anyObservation(draw)
  const replicas = 1 + Math.floor(draw() * 4)
  const count = Math.max(replicas, 1 + Math.floor(draw() * 5))
  const [first, ...others] = Array.from({ length: count }, (_, ordinal) => anyEngine(draw, ordinal))
  const serving: Run = {
    ...run,
    ...withRevision({ status: "active", engineImage: seen.run.revision?.engineImage ?? null, engineDigest: seen.run.revision?.engineDigest ?? null }),
    phase: "activated",
    replicas,
    ...(draw() < 0.3 ? { earlier: Math.floor(draw() * 3) } : {}),
    endpoints: [first, ...others].flatMap((each) => each?.endpoints ?? [])
  }
  const { ordinal: _, requests: __, ...alone } = first?.engine ?? anyEngine(draw, 0).engine
  const growth = { ...noGrowth, room: Math.floor(draw() * 3), yields: draw() < 0.8 ? 0 : 1 + Math.floor(draw() * 3), freeing: draw() < 0.3 }
  const { budget, fetch, resource } = seen
  return {
    now,
    // An engine above the wanted number is only observed while it has a pod.
    seen: {
      ...observed,
      ...alone,
      budget,
      fetch,
      resource,
      podClass: seen.podClass === null ? null : podClass,
      growth,
      run: serving,
      engines: others.flatMap(({ engine }) => (engine.ordinal < replicas || engine.pod !== null ? engine : []))
    }
  }
}
