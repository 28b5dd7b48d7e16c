import { ApiKeys, Organizations } from "@seatrial/store"
import { walk } from "@seatrial/store/testing"
import { Effect } from "effect"
import { eventually } from "../../e2e/eventually.ts"
import type { Administer, Command, Single, Who } from "./Command.ts"
import { phaseOf, type State, step } from "./ContractModel.ts"
import { compareReads } from "./compareReads.ts"
import { agree, Contradiction, exchange, type Names, openPlay, type Play, wordFor } from "./Play.ts"
import { type Deed, deedOf } from "./perform.ts"

const orders = <A>(all: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> =>
  all.length < 2 ? [all] : all.flatMap((first, index) => orders(all.filter((_, other) => other !== index)).map((rest) => [first, ...rest]))

const contradiction = (play: Play, what: string) =>
  new Contradiction({ message: `${what}\n${play.log.map((line, index) => `${index + 1}. ${line}`).join("\n")}` })

/** Does the deeds at once. Their answers have to be those of some order of theirs, begun in a state that the server may be in; the states that are left go on. */
const doAtOnce = Effect.fnUntraced(function* (play: Play, deeds: ReadonlyArray<Deed>) {
  const done = yield* Effect.forEach(deeds, (deed) => Effect.map(deed.run, (actual) => ({ deed, actual })), { concurrency: "unbounded" })
  for (const { actual } of done) play.met.set(wordFor(actual), (play.met.get(wordFor(actual)) ?? 0) + 1)
  play.log.push(done.map(({ actual, deed }) => `${deed.told} -> ${wordFor(actual)}`).join("\n   at once: "))
  const left = new Map<string, State>()
  let names: Names | null = null
  for (const order of orders(done)) {
    for (const begun of play.states) {
      let state = begun
      let known: Names | null = play.names
      for (const { actual, deed } of order) {
        const [next, expected] = step(state, deed.action)
        known = agree(known, expected, actual)
        if (known === null) break
        state = next
      }
      if (known === null) continue
      names = known
      left.set(
        JSON.stringify(state, (_, value: unknown) => (isRecord(value) ? Object.fromEntries(Object.entries(value).sort()) : value)),
        state
      )
    }
  }
  if (names === null) {
    const told = play.states.map((state) => JSON.stringify(done.map(({ deed }) => step(state, deed.action)[1]))).join(" or ")
    const texts = done.map(({ actual }) => (actual._tag === "Answer" ? actual.text : String(actual.changed))).join("\n")
    return yield* contradiction(play, `No order of the last step's deeds gives these answers:\n${texts}\nexpected, in the order given: ${told}`)
  }
  play.names = names
  play.states = [...left.values()]
})

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value)

const homeKeys = ["owner", "writer", "reader"] as const satisfies ReadonlyArray<Who>

/** Waits until each server has heard of it. */
const heardOf = (play: Play, who: Who, what: string, holds: (status: number) => boolean, ask?: { readonly path: string; readonly body: string }) =>
  Effect.forEach(
    [0, 1],
    (server) => {
      const key = play.keys[who].secret
      const probe =
        ask === undefined
          ? exchange(server, { method: "GET", path: "/v1/deployments?limit=1", key })
          : exchange(server, { method: "POST", path: ask.path, key, headers: { "idempotency-key": "probe" }, body: ask.body })
      return eventually(`server ${server} has heard: ${what}`, probe, ({ status }) => holds(status))
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
      yield* heardOf(play, command.who, `the key of ${command.who} is revoked`, (status) => status === 401)
      return
    }
    case "SetStatus": {
      yield* (yield* Organizations).setStatus(orgId, command.status)
      play.states = play.states.map((state) => ({ ...state, suspended: command.status === "suspended" }))
      const holds = (status: number) => (command.status === "suspended") === (status === 401)
      yield* Effect.forEach(live, (who) => heardOf(play, who, `the organisation is ${command.status}`, holds), { concurrency: 3 })
      return
    }
    case "Purchase": {
      yield* (yield* Organizations).recordPurchase({ orgId, micros: 1n })
      play.states = play.states.map((state) => ({ ...state, purchased: true }))
      if (suspended) return
      const ask = { path: "/v1/deployments", body: `{"model_id":"nobody","serve":false}` }
      const writing = live.filter((who) => who !== "reader")
      yield* Effect.forEach(writing, (who) => heardOf(play, who, "the purchase", (status) => status !== 402, ask), { concurrency: 2 })
    }
  }
})

const preparedPhases = ["materializing", "provisioning", "booting", "checking", "measuring", "benchmarking", "activating"]

/** Takes a run to `activating`, if it is surely in `screening`. */
const prepare = Effect.fnUntraced(function* (play: Play, of: number) {
  const known = [...play.names.runs]
  const found = known[of % Math.max(1, known.length)]
  if (found === undefined) return
  const [name, id] = found
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

/** All of a burst aimed at the same: keys, runs and models of the first, and for most creates its input too. */
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

/** Plays a sequence in an organisation of its own: each answer, and in the end all that can be read, has to be the model's. */
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
        const deeds = singles.flatMap((single) => (single._tag === "Prepare" ? [] : (deedOf(play, single) ?? [])))
        if (deeds.length > 0) yield* doAtOnce(play, deeds)
      }
    }
  }
  const differs = yield* compareReads(play)
  if (differs !== null) return yield* contradiction(play, differs)
})
