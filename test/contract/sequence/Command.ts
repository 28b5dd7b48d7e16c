import { Arbitrary, Schema } from "effect"

const below = (count: number) => Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: count - 1 }))

/** The key of a step. `writer` lacks `models:write`, `reader` lacks `deployments:write`, and `stranger` belongs to another organization. */
export type Who = "owner" | "writer" | "reader" | "stranger"
const shares: ReadonlyArray<Who> = ["owner", "owner", "owner", "owner", "owner", "owner", "writer", "writer", "reader", "stranger", "stranger"]
/** The key of a drawn number. */
export const whose = (share: number): Who => shares[share] ?? "owner"
const Share = below(shares.length)

const common = { who: Share, server: below(2), key: below(8), serving: below(3), ref: below(3), serve: Schema.Boolean, spelling: below(4) }

const Create = Schema.Struct({ _tag: Schema.tag("Create"), ...common, repo: below(2), name: below(4) })
const Redeploy = Schema.Struct({ _tag: Schema.tag("Redeploy"), ...common, of: below(40) })
/** Repeats an earlier create in another spelling or with another API key. With `changed`, the input differs. */
const Again = Schema.Struct({ _tag: Schema.tag("Again"), who: Share, server: below(2), of: below(40), spelling: below(4), changed: Schema.Boolean })
const Cancel = Schema.Struct({ _tag: Schema.tag("Cancel"), who: Share, server: below(2), of: below(40), bare: Schema.Boolean })
const Fail = Schema.Struct({ _tag: Schema.tag("Fail"), of: below(40) })
/** One forward step of the operator. */
const Advance = Schema.Struct({ _tag: Schema.tag("Advance"), of: below(40), by: below(4) })
/** The operator records the screening of a run. */
const Screen = Schema.Struct({ _tag: Schema.tag("Screen"), of: below(40) })
/** The operator takes a run up to `activating`. */
const Prepare = Schema.Struct({ _tag: Schema.tag("Prepare"), of: below(40) })
const Activate = Schema.Struct({ _tag: Schema.tag("Activate"), of: below(40) })
const DeleteModel = Schema.Struct({ _tag: Schema.tag("DeleteModel"), of: below(40) })

/** Commands that can run concurrently. */
const Single = Schema.Union([Create, Redeploy, Again, Cancel, Fail, Advance, Screen, Activate, DeleteModel])
export type Single = typeof Single.Type | typeof Prepare.Type

/** Concurrent commands over both servers. With `together`, all of them use the same run, model or idempotency key. */
export interface Burst {
  readonly _tag: "Burst"
  readonly together: boolean
  readonly singles: ReadonlyArray<Single>
}

const Revoke = Schema.Struct({ _tag: Schema.tag("Revoke"), who: Schema.Literals(["owner", "writer", "reader"]) })
const SetStatus = Schema.Struct({ _tag: Schema.tag("SetStatus"), status: Schema.Literals(["suspended", "active"]) })
const Purchase = Schema.Struct({ _tag: Schema.tag("Purchase") })
export type Administer = typeof Revoke.Type | typeof SetStatus.Type | typeof Purchase.Type

export type Command = Single | Burst | Administer

const weighted = <A>(choices: ReadonlyArray<readonly [weight: number, of: Arbitrary.Arbitrary<A>]>): Arbitrary.Arbitrary<A> => {
  const drawn = choices.flatMap(([weight, of]) => Array.from({ length: weight }, () => of))
  return Arbitrary.flatMap(Arbitrary.schema(below(drawn.length)), (index) => {
    const share = drawn[index]
    if (share === undefined) throw new RangeError("no such share")
    return share
  })
}

const single = weighted<Single>([
  [7, Arbitrary.schema(Create)],
  [4, Arbitrary.schema(Redeploy)],
  [5, Arbitrary.schema(Again)],
  [5, Arbitrary.schema(Cancel)],
  [2, Arbitrary.schema(Fail)],
  [3, Arbitrary.schema(Advance)],
  [2, Arbitrary.schema(Screen)],
  [2, Arbitrary.schema(Activate)],
  [2, Arbitrary.schema(DeleteModel)]
])
const burst = Arbitrary.map(
  Arbitrary.all({ together: Arbitrary.schema(Schema.Boolean), singles: Arbitrary.array(single, { minLength: 2, maxLength: 4 }) }),
  (of): Burst => ({ _tag: "Burst", ...of })
)

/** A random sequence of `length` steps. */
export const commands = (length: number): Arbitrary.Arbitrary<ReadonlyArray<Command>> =>
  Arbitrary.array(
    weighted<Command>([
      [50, single],
      [6, Arbitrary.schema(Prepare)],
      [16, burst],
      [1, Arbitrary.schema(Revoke)],
      [2, Arbitrary.schema(SetStatus)],
      [1, Arbitrary.schema(Purchase)]
    ]),
    { minLength: length, maxLength: length }
  )
