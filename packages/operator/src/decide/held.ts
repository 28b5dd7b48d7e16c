import { idleInterval } from "../limits.ts"
import type { Observation } from "../observation/Observation.ts"
import { act, by, type Decision } from "./Decision.ts"
import { hungAt, replaceHung } from "./hung.ts"
import { idleAt } from "./idle.ts"
import { serving } from "./servingEngine.ts"
import type { SuspectPart } from "./suspect.ts"
import { withdraw } from "./withdraw.ts"

/**
 * One engine of the serving revision: decides when it may idle, and when it hangs. `part`: what may happen to it after
 * an alarm. `othersServe`: whether other engines of the revision serve.
 */
export const held = (observation: Observation, now: number, part: SuspectPart = "alone", othersServe = false): Decision => {
  const hung = hungAt(observation)
  if (hung !== null && now >= hung) {
    const { actions, message } = replaceHung(observation)
    return by("hung", act(message, ...withdraw(observation), ...actions))
  }
  const at = idleAt(observation)
  const times = [hung, at === null ? null : Math.max(at, now + (at > now ? 0 : idleInterval))].flatMap((time) => time ?? [])
  const decision = serving(observation, now, part, othersServe)
  const all = [...times, ...(decision.requeueAt === null ? [] : [decision.requeueAt])]
  return { ...decision, requeueAt: all.length === 0 ? null : Math.min(...all) }
}
