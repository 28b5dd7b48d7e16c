import { ApiKeys, Organizations } from "@seatrial/store"
import { walk } from "@seatrial/store/testing"
import { Effect } from "effect"
import { eventually } from "../../e2e/eventually.ts"
import type { Administer, Command, Single, Who } from "./Command.ts"
import { phaseOf, type State, step } from "./ContractModel.ts"
import { compareReads } from "./compareReads.ts"
import { agree, Contradiction, exchange, labelOf, type Names, openPlay, type Play } from "./Play.ts"
import { type Step, stepOf } from "./perform.ts"

const orders = <A>(all: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> =>
  all.length < 2 ? [all] : all.flatMap((first, index) => orders(all.filter((_, other) => other !== index)).map((rest) => [first, ...rest]))

const contradiction = (play: Play, what: string) =>
  new Contradiction({ message: `${what}\n${play.log.map((line, index) => `${index + 1}. ${line}`).join("\n")}` })

/**
 * Runs the steps concurrently. The responses must match some order of the steps, starting in one of the possible states. The final states of the
 * matching orders become the possible states.
 */
const runConcurrently = Effect.fnUntraced(function* (play: Play, steps: ReadonlyArray<Step>) {
  const done = yield* Effect.forEach(steps, (each) => Effect.map(each.run, (actual) => ({ each, actual })), { concurrency: "unbounded" })
  for (const { actual } of done) play.met.set(labelOf(actual), (play.met.get(labelOf(actual)) ?? 0) + 1)
  play.log.push(done.map(({ actual, each }) => `${each.description} -> ${labelOf(actual)}`).join("\n   concurrently: "))
  const possible = new Map<string, State>()
  let names: Names | null = null
  for (const order of orders(done)) {
    for (const begun of play.states) {
      let state = begun
      let known: Names | null = play.names
      for (const { actual, each } of order) {
        const [next, expected] = step(state, each.action)
        known = agree(known, expected, actual)
        if (known === null) break
        state = next
      }
      if (known === null) continue
      names = known
      possible.set(
        JSON.stringify(state, (_, value: unknown) => (isRecord(value) ? Object.fromEntries(Object.entries(value).sort()) : value)),
        state
      )
    }
  }
  if (names === null) {
    const expected = play.states.map((state) => JSON.stringify(done.map(({ each }) => step(state, each.action)[1]))).join(" or ")
    const texts = done.map(({ actual }) => (actual._tag === "Answer" ? actual.text : String(actual.changed))).join("\n")
    return yield* contradiction(play, `No order of the last steps gives these responses:\n${texts}\nexpected in the listed order: ${expected}`)
  }
  play.names = names
  play.states = [...possible.values()]
})

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value)

const homeKeys = ["owner", "writer", "reader"] as const satisfies ReadonlyArray<Who>

/** Waits until both servers apply a change. */
const waitForServers = (play: Play, who: Who, what: string, holds: (status: number) => boolean, ask?: { readonly path: string; readonly body: string }) =>
  Effect.forEach(
    [0, 1],
    (server) => {
      const key = play.keys[who].secret
      const probe =
        ask === undefined
          ? exchange(server, { method: "GET", path: "/v1/deployments?limit=1", key })
          : exchange(server, { method: "POST", path: ask.path, key, headers: { "idempotency-key": "probe" }, body: ask.body })
      return eventually(`server ${server} applies: ${what}`, probe, ({ status }) => holds(status))
    },
    { concurrency: 2 }
  )

const administer = Effect.fnUntraced(function* (play: Play, command: Administer) {
  const { orgId } = play.tenants.home
  const revoked = play.states[0]?.revoked ?? []
  const live = homeKeys.filter((who) => !revoked.includes(who))
  const suspended = play.states[0]?.suspended === true
  play.log.push(JSON.stringify(command))
  switch (command._tag) {
    case "Revoke": {
      yield* (yield* ApiKeys).revoke(orgId, play.keys[command.who].id)
      play.states = play.states.map((state) => ({ ...state, revoked: [...new Set([...state.revoked, command.who])] }))
      yield* waitForServers(play, command.who, `the key of ${command.who} is revoked`, (status) => status === 401)
      return
    }
    case "SetStatus": {
      yield* (yield* Organizations).setStatus(orgId, command.status)
      play.states = play.states.map((state) => ({ ...state, suspended: command.status === "suspended" }))
      const holds = (status: number) => (command.status === "suspended") === (status === 401)
      yield* Effect.forEach(live, (who) => waitForServers(play, who, `the organization is ${command.status}`, holds), { concurrency: 3 })
      return
    }
    case "Purchase": {
      yield* (yield* Organizations).recordPurchase({ orgId, micros: 1n })
      play.states = play.states.map((state) => ({ ...state, purchased: true }))
      if (suspended) return
      const ask = { path: "/v1/deployments", body: `{"model_id":"nobody","serve":false}` }
      const writing = live.filter((who) => who !== "reader")
      yield* Effect.forEach(writing, (who) => waitForServers(play, who, "the purchase", (status) => status !== 402, ask), { concurrency: 2 })
    }
  }
})

const preparedPhases = ["materializing", "provisioning", "booting", "checking", "measuring", "benchmarking", "activating"]

/** Takes a run to `activating` if it is in `screening` in all possible states. */
const prepare = Effect.fnUntraced(function* (play: Play, of: number) {
  const known = [...play.names.runs]
  const entry = known[of % Math.max(1, known.length)]
  if (entry === undefined) return
  const [name, id] = entry
  if (!play.states.every(({ runs }) => runs[name] !== undefined && phaseOf(runs[name]) === "screening")) return
  play.log.push(`the operator prepares ${name}`)
  const org = play.states[0]?.runs[name]?.org ?? "home"
  yield* walk(play.callers[org], id, "activating")
  play.states = play.states.map((state) => {
    const run = state.runs[name]
    return run === undefined
      ? state
      : { ...state, runs: { ...state.runs, [name]: { ...run, phases: [...run.phases, ...preparedPhases], revision: "draft", checked: true } } }
  })
})

/** Gives all commands of a burst the idempotency key, run or model of the first one, and most creates its input as well. */
const together = (singles: ReadonlyArray<Single>): ReadonlyArray<Single> => {
  const first = singles[0]
  const create = singles.find((single) => single._tag === "Create")
  const of = first !== undefined && "of" in first ? first.of : 0
  return singles.map((single) => {
    if (single._tag === "Create" && create !== undefined) {
      const same = single.serving === 0 ? {} : { name: create.name, repo: create.repo, ref: create.ref, serving: create.serving, serve: create.serve }
      return { ...single, ...same, key: create.key }
    }
    return "of" in single ? { ...single, of } : single
  })
}

/** Runs a sequence in a new organization. Each response, and finally everything that can be read, must match the contract model. */
export const playSequence = Effect.fnUntraced(function* (sequence: ReadonlyArray<Command>, purchased: boolean, met: Map<string, number>) {
  const play = yield* openPlay(purchased, met)
  for (const command of sequence) {
    switch (command._tag) {
      case "Revoke":
      case "SetStatus":
      case "Purchase":
        yield* administer(play, command)
        break
      case "Prepare":
        yield* prepare(play, command.of)
        break
      default: {
        const singles = command._tag !== "Burst" ? [command] : command.together ? together(command.singles) : command.singles
        const steps = singles.flatMap((single) => (single._tag === "Prepare" ? [] : (stepOf(play, single) ?? [])))
        if (steps.length > 0) yield* runConcurrently(play, steps)
      }
    }
  }
  const differs = yield* compareReads(play)
  if (differs !== null) return yield* contradiction(play, differs)
})
