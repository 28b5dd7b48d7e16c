import { assert, describe, it } from "@effect/vitest"
import type { Run } from "@seatrial/store"
import { progressOf } from "../../src/apply/progressOf.ts"
import type { Decision } from "../../src/decide/Decision.ts"
import { openClasses } from "../../src/decide/placement.ts"
import { queued, waiting } from "../../src/decide/queues.ts"
import type { ClassOption, Observation } from "../../src/observation/Observation.ts"
import { optionOn } from "../hostClassOptions.ts"
import { observationOf, pod, podClass } from "../observations.ts"

const free = { freeSlots: 1, freeGpus: 4, classGpus: 4 }
const on = (phase: "queued" | "waiting", options: ReadonlyArray<ClassOption>, change: Partial<Observation> = {}, run: Partial<Run> = {}) =>
  observationOf(phase, { freeSlots: 0, options, ...change }, { servingRequest: { host_class: options.map(({ podClass }) => podClass.hostClass.name) }, ...run })

/** The phase that a decision enters, and the host class. */
const outcome = ({ actions, message }: Decision): string => {
  const entered = actions.find((action) => action._tag === "Enter")
  return entered?._tag === "Enter" ? `${entered.to} ${entered.plan?.settings.host_class ?? "its own"}${entered.replaces ? " replaces" : ""}` : message
}
const decideOn = (observation: Observation) => outcome(observation.run.phase === "waiting" ? waiting(observation) : queued(observation, 0))

const autoscaling = (option: ClassOption): ClassOption => ({ ...option, podClass: { ...option.podClass, autoscaling: true } })
const limited = { gpuLimit: 8 }
const large = (view: Partial<ClassOption> = {}) => optionOn("large", { freeSlots: 1, ...view }, 8)

const cases: ReadonlyArray<readonly [promise: string, observation: Observation, expected: string]> = [
  ["takes the first class that has free GPUs", on("queued", [optionOn("a"), optionOn("b", free), optionOn("c", free)]), "provisioning b"],
  ["takes the first class of several with free GPUs", on("queued", [optionOn("a", free), optionOn("b", free)]), "provisioning a"],
  ["leaves a class to the runs that go first there", on("queued", [optionOn("a", { ...free, ahead: 1 }), optionOn("b", free)]), "provisioning b"],
  ["takes free GPUs before it requests a node", on("queued", [autoscaling(optionOn("a")), optionOn("b", free)]), "provisioning b"],
  ["requests a node if no GPUs are free", on("queued", [optionOn("a"), autoscaling(optionOn("b"))]), "provisioning b"],
  [
    "waits for all of its classes",
    on("queued", [optionOn("a", { ahead: 3 }), optionOn("b", { freeGpus: 1, freeSlots: 1, ahead: 1 })]),
    "The deployment waits for GPUs of class a (0 of 8 free) or b (1 of 8 free): 1 deployment goes first."
  ],
  [
    "names another class that has room",
    on("queued", [optionOn("a"), optionOn("b")], { roomOn: { name: "c", freeGpus: 4, sameStore: true } }),
    "The deployment waits for GPUs of class a (0 of 8 free) or b (0 of 8 free): first in the queue. Host class c has 4 free GPUs, and the model fits there. To use this class, cancel this deployment and deploy again with `host_class: [a, b, c]` or `host_class: any`."
  ],
  [
    "names the fields of the object that someone applied",
    on(
      "queued",
      [optionOn("a"), optionOn("b")],
      { roomOn: { name: "c", freeGpus: 4, sameStore: true } },
      { applied: { namespace: "n", name: "m", current: null } }
    ),
    "The deployment waits for GPUs of class a (0 of 8 free) or b (0 of 8 free): first in the queue. Host class c has 4 free GPUs, and the model fits there. To use this class, set `spec.serving.hostClasses: [a, b, c]` or `spec.serving.hostClass: any`."
  ],
  [
    "names a class alone if the run may be placed there already and its weights are in another store",
    on("queued", [optionOn("a"), optionOn("b")], { roomOn: { name: "c", freeGpus: 4, sameStore: false } }, { servingRequest: { host_class: "any" } }),
    "The deployment waits for GPUs of class a (0 of 8 free) or b (0 of 8 free): first in the queue. Host class c has 4 free GPUs, and the model fits there. To use this class, cancel this deployment and deploy again with `host_class: c`."
  ],
  ["continues if its own class was deleted", on("queued", [optionOn("b", free)], { podClass: null }), "provisioning b"],
  [
    "requests GPUs from Kueue if only its queue may have room",
    on("queued", [optionOn("b")], { podClass: { ...podClass, queueName: "gpus" } }),
    "The deployment requests GPUs from Kueue's queue gpus."
  ],
  ["does not ask Kueue if another class has room", on("queued", [optionOn("b", free)], { podClass: { ...podClass, queueName: "gpus" } }), "provisioning b"],
  ["takes a large engine within the organization's limit", on("waiting", [large(), optionOn("small", free)], {}, limited), "provisioning large"],
  [
    "takes a smaller engine if the organization's limit has no room for a larger one",
    on("waiting", [large(), optionOn("small", free)], { organizationGpus: 4 }, limited),
    "provisioning small"
  ],
  [
    "waits for the limit with its smallest engine",
    on("waiting", [large(), optionOn("small", free, 4)], { organizationGpus: 6 }, limited),
    "The deployment waits for room under the organization's limit of 8 GPUs. It needs 4. The organization uses or has requested 6."
  ],
  [
    "counts with its smallest engine once it queues, and checks the limit for a larger one",
    on("queued", [large(), optionOn("small")], { organizationGpus: 4 }, limited),
    "The deployment waits for GPUs of class small (0 of 8 free): first in the queue."
  ],
  [
    "keeps its turn with its smallest engine if the limit is lowered",
    on("queued", [large(), optionOn("small", free)], { organizationGpus: 4 }, { gpuLimit: 1 }),
    "provisioning small"
  ]
]

describe("a run that several host classes could take", () => {
  for (const [promise, observation, expected] of cases) it(promise, () => assert.strictEqual(decideOn(observation), expected))

  it("is in the queues of the classes that could take it now, and counts with its smallest engine", () => {
    const options = [large(), optionOn("small")]
    assert.deepStrictEqual(openClasses(on("queued", options, { organizationGpus: 4 }, limited)), { classes: ["small"], gpus: 1 })
    assert.deepStrictEqual(openClasses(on("queued", options, {}, limited)), { classes: ["large", "small"], gpus: 1 })
    assert.isNull(openClasses(observationOf("queued")))
  })

  it("shows its place in the queue with the fewest runs ahead", () => {
    const observation = on("queued", [optionOn("a", { ahead: 3 }), optionOn("b", { ahead: 1 })], { ahead: 3 })
    assert.deepStrictEqual(progressOf(observation, "").queue, { waits_for: "capacity", place: 2 })
  })

  it("hides from API callers what the cluster reports about its nodes", () => {
    const { message, publicMessage } = queued(on("queued", [optionOn("a", { shortage: "node n is cordoned" }), optionOn("b")]), 0)
    assert.include(message, "a: node n is cordoned.")
    assert.strictEqual(publicMessage, "The deployment waits for GPUs of class a (0 of 8 free) or b (0 of 8 free): first in the queue.")
  })

  it("deletes an engine that a crash has left before it takes another class", () => {
    assert.deepStrictEqual(
      queued(on("queued", [optionOn("b", free)], { pod }), 0).actions.map(({ _tag }) => _tag),
      ["RemovePod"]
    )
  })
})
