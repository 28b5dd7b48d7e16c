import { adapterName, nameInEngine } from "@seatrial/domain"
import type { EngineAdapter } from "@seatrial/engines"
import type { Node } from "@seatrial/kube"
import type { Run, RunRevision } from "@seatrial/store"
import { type MergedModel, makeEngineClient, type Subject } from "@seatrial/trial"
import { type Duration, Effect } from "effect"
import type { ObservedPod } from "../observation/ObservedPod.ts"
import type { PodClass } from "../resources/PodClass.ts"
import type { WatchedPod } from "../resources/watched.ts"
import { WorkUnavailable } from "./WorkResult.ts"

/** A ready engine, and what it was started for. */
export interface EngineUnderTrial {
  readonly run: Run
  readonly revision: RunRevision
  readonly podClass: PodClass
  readonly engine: EngineAdapter
  readonly namespace: string
  readonly pod: ObservedPod
  readonly url: string
  /** The latest watched state of its pod, and of its node if known. */
  readonly enginePod: WatchedPod | undefined
  readonly node: Node | undefined
  /** The consequence of a capability that fails its check. */
  readonly failedCapability: "withdraw" | "fail"
  /** The answers that an adapter is compared with; null if it is not compared. */
  readonly merged: MergedModel | null
  /** Why the commit has no reference; null if it has one, or if the class computes none. */
  readonly noReference: string | null
}

/** The subject of the trial. `timeout` bounds each request, and `mostBytes` each answer. */
export const subjectOf = Effect.fnUntraced(function* ({ engine, podClass, revision, run, url }: EngineUnderTrial, timeout: Duration.Input, mostBytes?: number) {
  const { gpu_count, gpu_pool } = podClass.hostClass
  const name = nameInEngine(engine.wire, run.model)
  const adapted = revision.facts.adapter !== undefined
  const subject: Subject = {
    client: yield* makeEngineClient({ url, timeout, work: engine.wire.trialMetrics.work, ...(mostBytes === undefined ? {} : { mostBytes }) }),
    servedName: adapted ? engine.wire.adapterModel : name,
    listedName: adapted ? adapterName : name,
    takesAnyName: engine.names === "any",
    maxContext: revision.settings.max_context,
    engineVersion: revision.engineVersion,
    vocabSize: revision.facts.config.vocab_size,
    chat: revision.facts.chat_template !== null,
    card: `${gpu_pool} x${gpu_count}`
  }
  return subject
})

export const unavailable = ({ message }: { readonly message: string }) => new WorkUnavailable({ message })
