import { readdir, readFile } from "node:fs/promises"
import { assert, describe, it } from "@effect/vitest"
import { UserId } from "@seatrial/domain"
import { engineFor } from "@seatrial/engines"
import { ConfigProvider, Effect, Option, Predicate, Schema } from "effect"
import { parseAllDocuments } from "yaml"
import { OperatorSettings } from "../../src/OperatorSettings.ts"
import { customResource } from "../../src/objects/customResource.ts"
import { enginePod } from "../../src/objects/enginePod.ts"
import { fetchJob } from "../../src/objects/fetchObjects.ts"
import { customResourceDefinitions } from "../../src/resources/customResourceDefinitions.ts"
import { HostClassResource, HostClassSpec } from "../../src/resources/HostClassResource.ts"
import { ModelDeployment } from "../../src/resources/ModelDeployment.ts"
import { deploymentOfName, deploymentOfResource, enginePodName, eventName, fetchJobName, objectName } from "../../src/resources/objectNames.ts"
import { toPodClass } from "../../src/resources/PodClass.ts"
import { brokenRule } from "../../src/resources/Rule.ts"
import { hostClassRules, modelDeploymentRules } from "../../src/resources/rules.ts"
import { structuralSchema } from "../../src/resources/structuralSchema.ts"
import { deploymentId, podClass, revision, run } from "../observations.ts"
import { hostClassCases, modelDeploymentCases } from "./ruleCases.ts"

const folder = new URL("../../../../k8s/", import.meta.url)
const documents = async (path: string) => parseAllDocuments(await readFile(new URL(path, folder), "utf8")).map((document): unknown => document.toJS())

/** Every schema within a structural schema. */
const within = (schema: unknown): ReadonlyArray<Record<PropertyKey, unknown>> => {
  if (!Predicate.isObject(schema)) return []
  const properties = Predicate.isObject(schema.properties) ? Object.values(schema.properties) : []
  return [schema, ...[...properties, schema.items, schema.additionalProperties].flatMap(within)]
}

it("the name of an event is accepted by an API server, whatever its subject is", () => {
  for (const about of [deploymentId, "0f0c5c1e-2f4b-4d5e-9d8a-3c1c1a8a2b10"])
    assert.match(eventName(deploymentId, "KvLayoutDiffers", about), /^(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/)
})

describe("the definitions in k8s/crds", () => {
  it("match the schemas", async () => {
    for (const [file, definition] of Object.entries(customResourceDefinitions)) {
      assert.deepStrictEqual(await documents(`crds/${file}`), [JSON.parse(JSON.stringify(definition))])
    }
    assert.sameMembers(await readdir(new URL("crds/", folder)), Object.keys(customResourceDefinitions))
  })

  it("are structural: typed everywhere, without references or unions, and described", () => {
    for (const { spec } of Object.values(customResourceDefinitions)) {
      for (const { schema } of spec.versions) {
        const { properties } = schema.openAPIV3Schema
        for (const [name, field] of Object.entries(Predicate.isObject(properties) ? properties : {})) {
          if (name !== "spec" && name !== "status") continue
          for (const part of within(field)) {
            assert.isTrue(part.type !== undefined || part["x-kubernetes-preserve-unknown-fields"] === true, JSON.stringify(part))
            for (const keyword of ["$ref", "anyOf", "oneOf", "not", "allOf", "const"]) assert.notProperty(part, keyword)
            assert.isFalse(part.properties !== undefined && part.additionalProperties !== undefined)
            if (Predicate.isObject(part.properties)) {
              for (const [key, property] of Object.entries(part.properties)) {
                assert.isTrue(Predicate.isObject(property) && typeof property.description === "string", key)
              }
            }
          }
        }
      }
    }
  })

  it("refuse what the types cannot express", () => {
    assert.throws(() => structuralSchema(Schema.Union([Schema.String, Schema.Int])), /not structural/)
    assert.throws(() => structuralSchema(Schema.String.check(Schema.isPattern(/^(?!a)/u))), /look-around/)
  })
})

describe("the operator's evaluation of the rules", () => {
  for (const [name, spec, broken] of modelDeploymentCases) {
    it(`${broken === null ? "accepts" : "refuses"} the ModelDeployment ${name}`, () => {
      const problem = brokenRule(modelDeploymentRules, { metadata: { name }, spec })
      assert.strictEqual(problem === null ? null : problem.slice(0, broken?.length), broken)
    })
  }
  for (const [name, spec, broken] of hostClassCases) {
    it(`${broken === null ? "accepts" : "refuses"} the HostClass ${name}`, () => {
      assert.strictEqual(brokenRule(hostClassRules, { metadata: { name }, spec }), broken)
    })
  }

  it("has a case for every rule that it reads", () => {
    const broken = [...modelDeploymentCases, ...hostClassCases].flatMap(([, , problem]) => (problem === null ? [] : [problem]))
    const read: ReadonlyArray<{ readonly holds?: unknown; readonly message: string }> = [...modelDeploymentRules, ...hostClassRules]
    for (const { holds, message } of read)
      assert.strictEqual(
        broken.some((problem) => message.startsWith(problem)),
        holds !== undefined,
        message
      )
  })
})

describe("the samples", () => {
  it("are valid", async () => {
    for (const file of ["hostclass-local.yaml", "hostclass-h100.yaml"]) {
      const object = Schema.decodeUnknownSync(HostClassResource.schema)((await documents(`samples/${file}`))[0])
      assert.isTrue(Schema.is(HostClassSpec)(object.spec))
      assert.isTrue(Option.isSome(toPodClass(object)))
    }
  })

  it("tell previews how large a copy on a node may be, if that is the pod's own", async () => {
    const object = Schema.decodeUnknownSync(HostClassResource.schema)((await documents("samples/hostclass-h100.yaml"))[0])
    const limitOf = (weightsCache: NonNullable<HostClassSpec["weightsCache"]>) =>
      Option.getOrThrow(toPodClass({ ...object, spec: { ...object.spec, weightsCache } })).hostClass.weights_limit_bytes
    assert.deepStrictEqual([limitOf({ sizeBytes: 7 }), limitOf({}), limitOf({ claimName: "node-weights" })], [7, undefined, undefined])
  })
})

describe("the objects of a run", () => {
  const owner = { apiVersion: "seatrial.dev/v1alpha1", kind: "ModelDeployment", name: objectName(deploymentId), uid: "u", controller: true }
  const startedBy = Schema.decodeSync(UserId)("usr_01k3v7m8q2w4x6y8z0a2b4c6d8")
  const screened = { ...run, revision, startedBy }

  it("have names that follow from its id, and lead back to it", () => {
    for (const name of [objectName(deploymentId), enginePodName(deploymentId), `${fetchJobName(deploymentId)}-x7k2p`]) {
      assert.match(name, /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/)
      assert.deepStrictEqual(deploymentOfName(name), Option.some(deploymentId))
    }
    assert.deepStrictEqual(deploymentOfName("somebody-elses"), Option.none())
    assert.deepStrictEqual(deploymentOfResource(objectName(deploymentId)), Option.some(deploymentId))
    assert.deepStrictEqual(deploymentOfResource(`${objectName(deploymentId)}-copy`), Option.none())
  })

  it("show the run's settings in the custom resource", () => {
    const object = customResource({ ...screened, servingRequest: { host_class: "local", yarn: { factor: 2 } } }, "seatrial")
    const { spec } = Schema.decodeUnknownSync(ModelDeployment.schema)(JSON.parse(JSON.stringify(object)))
    assert.deepStrictEqual(spec.serving, { hostClass: "local", yarn: { factor: 2 } })
    assert.strictEqual(spec.model, "tiny-chat")
    assert.strictEqual(spec.deploymentId, deploymentId)
  })

  const engine = engineFor("reference")
  const pod =
    engine === undefined
      ? {}
      : JSON.parse(
          JSON.stringify(
            enginePod({
              run: screened,
              revision,
              podClass,
              engine,
              settings: { fetchImage: "seatrial:1", namespace: "seatrial", pullSecrets: [] },
              weightsClaim: "weights"
            })
          )
        )
  const fetching = {
    namespace: "seatrial",
    fetchImage: "seatrial:1",
    pullSecrets: ["registry"],
    fetchSeconds: 60,
    caConfigMap: "corp-ca",
    downloadEnvironment: [],
    hubEndpoint: "http://hub"
  }
  const jobOf = (change: Partial<typeof fetching>, withToken: boolean) =>
    fetchJob({ run: screened, revision, owner, weightsClaim: "weights", settings: { ...fetching, ...change } }, withToken)
  const job = JSON.parse(JSON.stringify(jobOf({}, true)))

  it("start an engine on read-only weights, offline, without credentials, with all GPUs of its class", () => {
    const [container] = pod.spec.containers
    assert.deepInclude(pod.spec, { automountServiceAccountToken: false, enableServiceLinks: false, restartPolicy: "Always" })
    const folder = `seatrial/tiny-chat/${revision.facts.commit}`
    assert.deepInclude(container.volumeMounts, { name: "weights", mountPath: `/models/${folder}`, subPath: folder, readOnly: true })
    assert.deepInclude(container.env, { name: "HF_HUB_OFFLINE", value: "1" })
    assert.deepStrictEqual(container.env[0], { name: "POD_IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } })
    assert.deepStrictEqual(container.resources.limits, { "nvidia.com/gpu": "1" })
    assert.include(container.args, `--model=/models/seatrial/tiny-chat/${revision.facts.commit}`)
    assert.notInclude(JSON.stringify(pod), "HF_TOKEN")
  })

  it("distinguish downloads with different settings, but not by the hub token", () => {
    const madeFrom = (made: ReturnType<typeof jobOf>) => made.metadata.annotations?.["seatrial.dev/made-from"]
    assert.strictEqual(madeFrom(jobOf({}, true)), madeFrom(jobOf({}, false)))
    assert.notStrictEqual(madeFrom(jobOf({}, true)), madeFrom(jobOf({ hubEndpoint: "http://other" }, true)))
  })

  it("download with the certificates of the installation", () => {
    const { containers, volumes } = job.spec.template.spec
    assert.deepInclude(containers[0].env, { name: "NODE_EXTRA_CA_CERTS", value: "/etc/seatrial/certificates/ca.crt" })
    assert.deepInclude(containers[0].volumeMounts, { name: "certificates", mountPath: "/etc/seatrial/certificates", readOnly: true })
    assert.deepInclude(volumes, { name: "certificates", configMap: { name: "corp-ca" } })
  })

  it("name the organization whose hub token they use, so that refusals of the hub are in the terms of an applied object", () => {
    const argumentsOf = (startedBy: UserId | null) =>
      JSON.stringify(fetchJob({ run: { ...screened, startedBy }, revision, owner, weightsClaim: "weights", settings: fetching }, true))
    assert.include(argumentsOf(null), `"--token-shared-by=${screened.orgSlug}"`)
    assert.notInclude(argumentsOf(startedBy), "--token-shared-by")
  })

  it("inherit proxy settings from the operator", () =>
    Effect.runPromise(
      Effect.map(OperatorSettings.parse(ConfigProvider.fromUnknown({ NODE_USE_ENV_PROXY: "1", HTTPS_PROXY: "http://proxy:3128" })), (settings) =>
        assert.deepStrictEqual(settings.downloadEnvironment, [
          { name: "NODE_USE_ENV_PROXY", value: "1" },
          { name: "HTTPS_PROXY", value: "http://proxy:3128" }
        ])
      )
    ))

  it("are owned by their custom resource if they only prepare, and not if they serve", () => {
    assert.deepStrictEqual([pod.metadata.ownerReferences, job.metadata.ownerReferences], [undefined, [owner]])
  })

  it("download exactly the screened files, with the token by reference only", () => {
    const { containers, restartPolicy } = job.spec.template.spec
    assert.strictEqual(restartPolicy, "Never")
    assert.deepStrictEqual(containers[0].command, ["seatrial", "fetch"])
    assert.match(
      containers[0].args.join(" "),
      /^--repo=seatrial\/tiny-chat --commit=[0-9a-f]{40} --directory=\/weights\/seatrial\/tiny-chat\/[0-9a-f]{40} --manifest=[0-9a-f]{64}$/
    )
    assert.deepInclude(containers[0].env, { name: "HF_TOKEN", valueFrom: { secretKeyRef: { name: `${objectName(deploymentId)}-hub`, key: "token" } } })
    assert.deepStrictEqual([job.spec.backoffLimit, job.spec.activeDeadlineSeconds], [2, 60])
  })

  it("comply with the restricted Pod Security level", () => {
    for (const spec of [pod.spec, job.spec.template.spec]) {
      assert.deepInclude(spec.securityContext, { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } })
      for (const { securityContext } of spec.containers) {
        assert.deepStrictEqual(securityContext, { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ["ALL"] } })
      }
    }
  })
})
