import { Spending } from "@seatrial/domain"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { Authorization, Boundary } from "./middleware.ts"
import { policy } from "./policy.ts"
import { NoQuery } from "./queries.ts"

/** What the organization may spend and has spent. */
export class SpendingGroup extends HttpApiGroup.make("spending")
  .add(
    HttpApiEndpoint.get("get", "/v1/spending", {
      query: NoQuery,
      success: Spending
    }).annotateMerge(policy("read", ["requests:read"]))
  )
  .middleware(Authorization)
  .middleware(Boundary) {}
