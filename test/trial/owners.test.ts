import { assert, describe, it } from "@effect/vitest"
import {
  type InferencePath,
  inferencePaths,
  modelCapabilities,
  requestVocabulary,
  responseFormatVocabulary,
  withdrawCapabilities,
  withdrawingChecks
} from "@seatrial/domain"
import { engines } from "@seatrial/engines"
import { suiteChecks } from "@seatrial/trial"
import { capabilityUses } from "../../packages/gateway/test/capabilityUses.ts"
import { ableTemplate, capabilitiesOf, everything, seeing, sentOf } from "../../packages/gateway/test/vocabularyTargets.ts"
import { featureOwners, fieldOwners, formatOwners, type Owners, otherwise, pathOwners } from "./owners.ts"

const classes = new Map(suiteChecks({ repeats: null, likelihood: null, fidelity: null, loadedChecksum: null }).map(({ class: kind, name }) => [name, kind]))
const all = capabilitiesOf(everything)
const rowsOf = (owners: Owners) => owners.filter((owner) => !otherwise.some((one) => one === owner))
const without = (owners: Owners) => withdrawCapabilities(all, rowsOf(owners))

/** Whether a failure of any of the rows fails the run, so that the catalog shows nothing. */
const ends = (owners: Owners) => rowsOf(owners).some((owner) => classes.get(owner) === "required")
/** Whether an engine is responsible. */
const isSeen = (owners: Owners) => rowsOf(owners).length > 0

/** The members of a catalog record, by path. */
const members = (value: unknown, path = ""): ReadonlyArray<readonly [path: string, value: unknown]> =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? Object.entries(value).flatMap(([name, member]) => members(member, path === "" ? name : `${path}.${name}`))
    : [[path, value]]
const features = ({ reasoning_controls, tool_calling, ...rest }: typeof all) =>
  new Map([...Object.entries(rest).filter(([, value]) => typeof value === "boolean"), ...members({ reasoning_controls, tool_calling })])
const isShown = (value: unknown) => value === true || (Array.isArray(value) && value.length > 0)

describe("every catalog entry has an owner", () => {
  it("each check of a capability takes one away, and each withdrawal has a check", () => {
    const checks = [...classes].flatMap(([name, kind]) => (kind === "capability" ? [name] : []))
    for (const name of checks) assert.notDeepEqual(withdrawCapabilities(seeing, [name]), seeing, name)
    assert.deepStrictEqual(
      withdrawingChecks.filter((name) => !classes.has(name)),
      []
    )
  })

  it("each field, format, feature and path has a row of the suite, or a reason why there is none", () => {
    for (const path of inferencePaths) {
      assert.sameMembers(Object.keys(fieldOwners[path]), [...requestVocabulary[path]], path)
      assert.sameMembers(Object.keys(formatOwners[path]), [...responseFormatVocabulary[path]], path)
    }
    assert.sameMembers(Object.keys(pathOwners), [...inferencePaths])
    assert.sameMembers(Object.keys(featureOwners), [...features(all).keys()])
    const owners = [featureOwners, pathOwners, ...Object.values(fieldOwners), ...Object.values(formatOwners)].flatMap(
      (each): ReadonlyArray<Owners> => Object.values(each)
    )
    assert.deepStrictEqual(
      owners.filter((each) => each.length === 0 || rowsOf(each).some((owner) => !classes.has(owner))),
      []
    )
  })

  for (const path of inferencePaths) {
    it(`${path}: entries that their rows did not observe are not listed`, () => {
      const left: Array<string> = []
      for (const [field, owners] of Object.entries<Owners>(fieldOwners[path])) {
        if (!isSeen(owners) || ends(owners)) continue
        const capabilities = without(owners)
        const stays = capabilities.supported_parameters_by_endpoint[path]?.includes(field) === true
        // A field that only selects a format is useless without formats.
        const isForm = ["response_format", "text"].includes(field)
        const forms = capabilities.supported_response_formats_by_endpoint[path]?.filter((form) => form !== "text") ?? []
        if (stays && !(isForm && forms.length === 0)) left.push(field)
        if (path === "/v1/chat/completions" && capabilities.supported_parameters.includes(field) !== stays) left.push(`supported_parameters: ${field}`)
      }
      for (const [format, owners] of Object.entries<Owners>(formatOwners[path])) {
        if (isSeen(owners) && without(owners).supported_response_formats_by_endpoint[path]?.includes(format) === true) left.push(format)
      }
      for (const row of rowsOf(pathOwners[path])) if (!ends([row]) && without([row]).supported_endpoints.includes(path)) left.push(`${path} without ${row}`)
      assert.deepStrictEqual(left, [])
    })
  }

  it("a feature is false if any of its rows did not observe it", () => {
    for (const [feature, owners] of Object.entries(featureOwners)) {
      for (const row of rowsOf(owners)) if (!ends([row])) assert.isFalse(isShown(features(without([row])).get(feature)), `${feature} without ${row}`)
    }
  })

  it("features that are not served are in no engine's contract", () => {
    const unserved = Object.keys(featureOwners).filter((feature) => featureOwners[feature]?.includes("not served") === true)
    for (const engine of engines) {
      const shown = modelCapabilities(engine.served, { chat_template: ableTemplate, commit: "c".repeat(40) })
      for (const feature of unserved) assert.isFalse(isShown(features(shown).get(feature)), `${engine.version}: ${feature}`)
      for (const path of inferencePaths) {
        for (const [field, owners] of Object.entries<Owners>(fieldOwners[path])) {
          if (owners.includes("not served"))
            assert.isFalse(shown.supported_parameters_by_endpoint[path]?.includes(field), `${engine.version}: ${path} ${field}`)
        }
      }
    }
  })

  it("fields without effect or handled by the gateway are not sent to an engine unchanged", () => {
    const least: Readonly<Record<InferencePath, Readonly<Record<string, unknown>>>> = {
      "/v1/chat/completions": { messages: [{ role: "user", content: "hi" }] },
      "/v1/completions": { prompt: "hi" },
      "/v1/responses": { input: "hi" },
      "/v1/messages": { messages: [{ role: "user", content: "hi" }], max_tokens: 9 },
      "/v1/messages/count_tokens": { messages: [{ role: "user", content: "hi" }] }
    }
    for (const path of inferencePaths) {
      for (const [field, owners] of Object.entries<Owners>(fieldOwners[path])) {
        if (isSeen(owners) || owners.includes("not served")) continue
        const use = capabilityUses.find(({ capability }) => capability === `supported_parameters_by_endpoint.${path}.${field}`)
        const request = { ...least[path], ...use?.body, model: "m" }
        assert.property(request, field)
        const sent = sentOf(request, path)
        const bare = sentOf({ ...request, [field]: undefined }, path)
        assert.deepStrictEqual(sent, bare, `${path} ${field}`)
      }
    }
  })
})
