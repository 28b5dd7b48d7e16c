import { adapterName, nameInEngine } from "@seatrial/domain"
import type { EngineAdapter } from "@seatrial/engines"
import type { Node } from "@seatrial/kube"
import type { Run, RunRevision } from "@seatrial/store"
import { type MergedModel, makeEngineClient, type Subject } from "@seatrial/trial"
import { type Duration, Effect } from "effect"
import type { PodSeen } from "../decide/Observation.ts"
import type { WatchedPod } from "../gather/watched.ts"
import type { PodClass } from "../resources/HostClassResource.ts"
import { WorkUnavailable } from "./WorkResult.ts"

/** One engine that is ready, and what it was started for. */
export interface EngineUnderTrial {
  readonly run: Run
  readonly revision: RunRevision
  readonly podClass: PodClass
  readonly engine: EngineAdapter
  readonly namespace: string
  readonly pod: PodSeen
  readonly url: string
  /** Its pod as the watch told of it last, and the node that this is bound to, where that is known. */
  readonly enginePod: WatchedPod | undefined
  readonly node: Node | undefined
  /** What a capability does that its check did not see working. */
  readonly failedCapability: "withdraw" | "fail"
  /** What an adapter is compared with; null where it is compared with nothing. */
  readonly merged: MergedModel | null
}

/** What the trial is made against; `timeout` bounds each exchange. */
export const subjectOf = Effect.fnUntraced(function* ({ engine, podClass, revision, run, url }: EngineUnderTrial, timeout: Duration.Input) {
  const { gpu_count, gpu_pool } = podClass.hostClass
  const name = nameInEngine(engine.wire, run.model)
  const adapted = revision.facts.adapter !== undefined
  const subject: Subject = {
    client: yield* makeEngineClient(url, timeout),
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
