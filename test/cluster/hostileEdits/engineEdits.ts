import { Effect } from "effect"
import type { Edit } from "./Edit.ts"
import { type EditStage, namespace } from "./EditStage.ts"

/** An owner that does not exist: the garbage collector deletes its dependents. */
const noOwner = [{ apiVersion: "v1", kind: "ConfigMap", name: "nothing", uid: "00000000-0000-4000-8000-000000000000" }]

const pod = (name: string, change: object, undone?: object): Edit => ({
  name: `pod: ${name}`,
  make: ({ patch, ...stage }) => Effect.flatMap(stage.pod, (edited) => patch(edited, change)),
  ...(undone === undefined ? {} : { undo: ({ patch, ...stage }: EditStage) => Effect.flatMap(stage.pod, (edited) => patch(edited, undone)) })
})

/** The pod is another one. Events of earlier interruptions do not count. */
const interruption = (name: string, make: Edit["make"]): Edit => ({
  name: `pod: ${name}`,
  interrupts: true,
  make: (stage) => Effect.andThen(stage.kubectl("delete", "events", "--all"), make(stage)),
  shows: ({ kubectl }) => [
    kubectl("get", "events", "-o", 'jsonpath={range .items[?(@.involvedObject.kind=="ModelDeployment")]}{.type} {.reason}{"\\n"}{end}'),
    (events) => events.includes("Warning EngineNotReady") && events.includes("Normal Serving")
  ]
})

/** The specification of the budget is what it was. */
const budget = (name: string, make: (stage: EditStage, edited: string) => Effect.Effect<string>): Edit => ({
  name: `disruption budget: ${name}`,
  make: (stage) => Effect.flatMap(stage.budget, (edited) => make(stage, edited)),
  shows: ({ budget, kubectl }) => [
    Effect.flatMap(budget, (edited) => kubectl("get", edited, "-o", "jsonpath={.spec}")),
    (text) => {
      const { selector = {}, ...rest } = text.startsWith("{") ? JSON.parse(text) : {}
      return JSON.stringify(rest) === '{"minAvailable":1,"unhealthyPodEvictionPolicy":"AlwaysAllow"}' && Object.keys(selector.matchLabels ?? {}).length === 2
    }
  ]
})
const budgetSpec = (name: string, change: object): Edit => budget(name, ({ patch }, edited) => patch(edited, { spec: change }))

const eviction = (name: string) => ({ apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace } })

/** Edits of the objects of the engine that serves. */
export const engineEdits: ReadonlyArray<Edit> = [
  pod("the label of its role is removed", { metadata: { labels: { "seatrial.dev/role": null } } }, { metadata: { labels: { "seatrial.dev/role": "engine" } } }),
  pod("annotations are removed", { metadata: { annotations: null } }),
  pod("it was made from something else", { metadata: { annotations: { "seatrial.dev/made-from": "0" } } }),
  pod("its price is no number", { metadata: { annotations: { "seatrial.dev/price-per-gpu-hour": "much" } } }),
  pod(
    "its host class is another one",
    { metadata: { labels: { "seatrial.dev/host-class": "none" } } },
    { metadata: { labels: { "seatrial.dev/host-class": "sim-small" } } }
  ),
  pod(
    "its organization is another one",
    { metadata: { labels: { "seatrial.dev/organization": "globex" } } },
    { metadata: { labels: { "seatrial.dev/organization": "local" } } }
  ),
  pod("a finalizer of someone else", { metadata: { finalizers: ["example.com/mine"] } }, { metadata: { finalizers: null } }),
  {
    name: "pod: it is evicted",
    make: ({ cluster, pod }) =>
      Effect.flatMap(pod, (name) =>
        cluster
          .command("kubectl", ["create", "--raw", `/api/v1/namespaces/${namespace}/pods/${name.slice("pod/".length)}/eviction`, "-f", "-"], {
            input: JSON.stringify(eviction(name.slice("pod/".length)))
          })
          .pipe(Effect.catch(({ message }) => Effect.succeed(message)))
      ),
    refused: "disruption budget"
  },
  interruption("it is deleted", ({ kubectl, pod }) => Effect.flatMap(pod, (name) => kubectl("delete", name, "--wait=false"))),
  interruption("it is deleted by force", ({ kubectl, pod }) =>
    Effect.flatMap(pod, (name) => kubectl("delete", name, "--force", "--grace-period=0", "--wait=false"))
  ),
  interruption("its owner does not exist", ({ patch, pod }) => Effect.flatMap(pod, (name) => patch(name, { metadata: { ownerReferences: noOwner } }))),
  budgetSpec("it allows every eviction", { minAvailable: 0 }),
  budgetSpec("it has a percentage", { minAvailable: "50%" }),
  budgetSpec("it counts unavailable pods", { minAvailable: null, maxUnavailable: "100%" }),
  budgetSpec("it selects another pod", { selector: { matchLabels: { "seatrial.dev/deployment": "other" } } }),
  budgetSpec("it selects by expressions", { selector: { matchExpressions: [{ key: "more", operator: "Exists" }] } }),
  budgetSpec("it protects a pod that is not ready", { unhealthyPodEvictionPolicy: "IfHealthyBudget" }),
  budget("it is deleted", ({ kubectl }, edited) => kubectl("delete", edited)),
  budget("its owner does not exist", ({ patch }, edited) => patch(edited, { metadata: { ownerReferences: noOwner } })),
  budget("labels are removed", ({ patch }, edited) => patch(edited, { metadata: { labels: null } })),
  {
    name: "a Job with the name of its download",
    make: ({ apply, budget }) =>
      Effect.flatMap(budget, (name) =>
        apply({
          apiVersion: "batch/v1",
          kind: "Job",
          metadata: { name: `${name.split("/")[1]}-fetch`, namespace },
          spec: { suspend: true, template: { spec: { restartPolicy: "Never", containers: [{ name: "fetch", image: "nowhere.invalid/x:1" }] } } }
        })
      ),
    undo: ({ budget, kubectl }) => Effect.flatMap(budget, (name) => kubectl("delete", "job", `${name.split("/")[1]}-fetch`, "--ignore-not-found"))
  },
  {
    name: "a Secret with the name of its token",
    make: ({ apply, budget }) =>
      Effect.flatMap(budget, (name) =>
        apply({ apiVersion: "v1", kind: "Secret", metadata: { name: `${name.split("/")[1]}-hub`, namespace }, stringData: { token: "x" } })
      ),
    undo: ({ budget, kubectl }) => Effect.flatMap(budget, (name) => kubectl("delete", "secret", `${name.split("/")[1]}-hub`, "--ignore-not-found"))
  }
]
