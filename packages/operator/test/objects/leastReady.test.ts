import { assert, describe, it } from "@effect/vitest"
import { leastReady } from "../../src/objects/disruptionBudget.ts"

const engine = (number: number, changes: object = {}) => ({
  name: `engine-${number}`,
  url: `http://10.0.0.${number}:8000`,
  deleting: false,
  lost: null,
  ready: true,
  ...changes
})
const route = (number: number, reachable = true) => ({ pod: `engine-${number}`, url: `http://10.0.0.${number}:8000`, reachable })
const routes = (...numbers: ReadonlyArray<number>) => numbers.map((number) => route(number))

describe("the number of engines that must be ready for the others to be evicted", () => {
  const all = [engine(0), engine(1), engine(2), engine(3)]
  const cases = [
    ["one engine", 1, [engine(0)], routes(0), 1],
    ["one engine that starts", 1, [engine(0, { ready: false })], [], 1],
    ["four that serve", 4, all, routes(0, 1, 2, 3), 3],
    ["one of four has no traffic yet", 4, all, routes(0, 1, 2), 4],
    ["no gateway has reached one of four", 4, all, [...routes(0, 1, 2), route(3, false)], 4],
    ["one of four is missing", 4, [engine(0), engine(1), engine(2), null], routes(0, 1, 2), 4],
    ["one of four is deleted", 4, [engine(0), engine(1), engine(2), engine(3, { deleting: true })], routes(0, 1, 2, 3), 4],
    ["one of four is lost", 4, [engine(0), engine(1), engine(2), engine(3, { lost: "Evicted" })], routes(0, 1, 2, 3), 4],
    ["one of four is not ready", 4, [engine(0), engine(1), engine(2), engine(3, { ready: false })], routes(0, 1, 2, 3), 4],
    ["one of four has a new address", 4, [engine(0), engine(1), engine(2), engine(3, { url: "http://10.0.0.9:8000" })], routes(0, 1, 2, 3), 4],
    ["only one of four serves", 4, [engine(0), null, null, null], routes(0), 4],
    ["three of four leave", 1, all, routes(0), 4],
    ["two of four leave", 2, all, routes(0, 1), 3]
  ] as const
  for (const [what, replicas, pods, endpoints, expected] of cases) {
    it(`${what}: ${expected}`, () => assert.strictEqual(leastReady({ replicas, endpoints }, pods), expected))
  }

  const earlier = [
    ["no newer engine serves", [], all, routes(0, 1, 2, 3), 3],
    ["one newer engine serves", ["new-0"], [engine(0), engine(1), engine(2)], routes(0, 1, 2), 2],
    ["one newer engine serves, and an earlier one leaves", ["new-0"], all, routes(0, 1, 2), 3],
    ["one newer engine serves, and an earlier one was lost", ["new-0"], [engine(0), engine(1), null], routes(0, 1), 2],
    ["three newer engines serve", ["new-0", "new-1", "new-2"], [engine(0)], routes(0), 0],
    ["three newer engines serve, and an earlier one finishes its requests", ["new-0", "new-1", "new-2"], [engine(0)], [], 1]
  ] as const
  for (const [what, newer, pods, endpoints, expected] of earlier) {
    it(`of an earlier revision, ${what}: ${expected}`, () => assert.strictEqual(leastReady({ replicas: 4, newer, endpoints }, pods), expected))
  }
})
