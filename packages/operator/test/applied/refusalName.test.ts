import { assert, it } from "@effect/vitest"
import { Schema } from "effect"
import { refusalName } from "../../src/applied/refuse.ts"
import { aboutResource } from "../../src/apply/transitionEvents.ts"

const part = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
/** What Kubernetes takes for a name (RFC 1123). */
const isName = (name: string) => name.length <= 253 && new RegExp(`^${part}([.]${part})*$`, "u").test(name)

const parts = ["a", "b-c", "d--e", "fgh", "i---j"]
const int = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))
const uid = "8a1b2c3d-1111-4222-8333-944455566677"

it.prop(
  "the event of a refusal has a name that an API server accepts, whatever the object's name is",
  [Schema.Array(int(0, parts.length - 1)).check(Schema.isBetweenLength(1, 8)), int(1, 253)],
  ([chosen, length]) => {
    const some = chosen.map((which) => parts[which] ?? "a").join(".")
    const name = Array.from({ length: 253 }, () => some)
      .join(".")
      .slice(0, length)
      .replace(/[-.]+$/u, "")
    assert.isTrue(isName(name), name)
    const resource = { metadata: { name, namespace: "seatrial", uid }, spec: { source: { repo: "seatrial/tiny-chat" } } }
    const eventName = refusalName(name, "OrganizationMismatch")
    const { metadata } = aboutResource(resource, { name: eventName, type: "Warning", action: "Validate", reason: "Refused", message: "", at: 0, again: "1" })
    assert.isTrue(isName(metadata.name), metadata.name)
  }
)
