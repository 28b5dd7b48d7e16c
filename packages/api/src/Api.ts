import { HttpApi, OpenApi } from "effect/http-api"
import { DeploymentsGroup } from "./DeploymentsGroup.ts"
import { CatalogGroup, ModelsGroup } from "./ModelsGroup.ts"
import { OrgGroup } from "./OrgGroup.ts"
import { describeApi } from "./openApi.ts"
import { RequestsGroup } from "./RequestsGroup.ts"
import { SpendingGroup } from "./SpendingGroup.ts"
import { SystemGroup } from "./SystemGroup.ts"

const strict = { onExcessProperty: "error" } as const

/** The HTTP API of the server. */
export class Api extends HttpApi.make("seatrial")
  .add(DeploymentsGroup, RequestsGroup, OrgGroup, ModelsGroup, CatalogGroup, SpendingGroup, SystemGroup)
  .annotate(HttpApi.QueryParseOptions, strict)
  .annotate(HttpApi.PayloadParseOptions, strict)
  .annotateMerge(
    OpenApi.annotations({
      title: "Seatrial",
      version: "1.0.0",
      description:
        "Model serving: the organization's requests, receipts, models, deployments and audit events, and the public catalog. A call concerns only the organization of its API key.",
      transform: describeApi
    })
  ) {}
