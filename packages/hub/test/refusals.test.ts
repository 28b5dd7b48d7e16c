import { assert, describe, it } from "@effect/vitest"
import { Commit, type RefusalCode } from "@seatrial/domain"
import { Schema } from "effect"
import { HubRefusal } from "../src/failures.ts"
import { RefusalAudience, RefusalReason, type RefusalText } from "../src/refusals.ts"

const repo = "acme/model"
const commit = Schema.decodeSync(Commit)("a".repeat(40))

/** The texts are contract. `object`: for an applied object of acme, if the text differs from the one for an API caller. */
const cases: ReadonlyArray<{ readonly reason: RefusalReason; readonly code: RefusalCode; readonly caller: RefusalText; readonly object?: RefusalText }> = [
  {
    reason: RefusalReason.NoHubConnection({ repo }),
    code: "no_hub_connection",
    caller: {
      message: "The repository acme/model is gated, and no hub token is stored for the user who owns this API key.",
      remedy:
        "Accept the repository's terms on the hub, then store for that user a hub token that can read the repository (`seatrial admin hub-connections set`)."
    },
    object: {
      message: "The repository acme/model is gated, and the organization acme shares no hub token with its ModelDeployments.",
      remedy:
        "Accept the repository's terms on the hub, then store for one user a hub token that can read the repository, and share that token (`seatrial admin hub-connections set --org acme --email ...`, then `seatrial admin hub-connections share --org acme --email ...`)."
    }
  },
  {
    reason: RefusalReason.RepositoryNotFound({ repo, hasToken: false }),
    code: "repository_not_found",
    caller: {
      message: "The hub has no repository acme/model, or does not show it to the user who owns this API key.",
      remedy: "Check the owner and the name. If the repository is private, store for that user a hub token that can read it."
    },
    object: {
      message:
        "The hub has no repository acme/model, or does not show it to the organization acme. Its ModelDeployments use the hub token that the organization shares, or no token if it shares none.",
      remedy:
        "Check the owner and the name. If the repository is private, store for one user a hub token that can read the repository, and share that token (`seatrial admin hub-connections set --org acme --email ...`, then `seatrial admin hub-connections share --org acme --email ...`)."
    }
  },
  {
    reason: RefusalReason.RepositoryNotFound({ repo, hasToken: true }),
    code: "repository_not_found",
    caller: {
      message: "The hub has no repository acme/model, or does not show it to the user who owns this API key.",
      remedy: "Check the owner and the name. If the repository is private, the hub token must have access to it."
    },
    object: {
      message:
        "The hub has no repository acme/model, or does not show it to the organization acme. Its ModelDeployments use the hub token that the organization shares, or no token if it shares none.",
      remedy: "Check the owner and the name. If the repository is private, the hub token must have access to it."
    }
  },
  {
    reason: RefusalReason.RepositoryDisabled({ repo }),
    code: "access_required",
    caller: {
      message: "The hub has disabled the repository acme/model, so it cannot be read.",
      remedy: "Choose another repository that has this model."
    }
  },
  {
    reason: RefusalReason.RepositoryClosedByLaw({ repo }),
    code: "access_required",
    caller: {
      message: "The hub is not allowed to show the repository acme/model for legal reasons (status 451), so Seatrial cannot read it there.",
      remedy: "Choose another repository that has this model."
    }
  },
  {
    reason: RefusalReason.TokenNotAccepted(),
    code: "access_required",
    caller: {
      message: "The hub does not accept the hub token of the user who owns this API key: it was revoked, or has expired.",
      remedy: "Store a new hub token for that user (`seatrial admin hub-connections set`)."
    },
    object: {
      message: "The hub does not accept the hub token that the organization acme shares: it was revoked, or has expired.",
      remedy: "Store a new hub token for the user whose token is shared (`seatrial admin hub-connections set --org acme --email ...`)."
    }
  },
  {
    reason: RefusalReason.TokenNotAllowed({ repo }),
    code: "access_required",
    caller: {
      message: "The hub token of the user who owns this API key may not read acme/model.",
      remedy: "Ask the repository's owner for access, or store the token of an account that has access."
    },
    object: {
      message: "The hub token that the organization acme shares may not read acme/model.",
      remedy:
        "Ask the repository's owner for access, or store and share the token of an account that has access (`seatrial admin hub-connections set` and `share --org acme --email ...`)."
    }
  },
  {
    reason: RefusalReason.FileMissing({ repo, commit }),
    code: "unsupported_format",
    caller: {
      message: "The model hub cannot deliver a file that it lists for acme/model at commit aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.",
      remedy: "Choose a repository or a revision with safetensors weights, a configuration and a tokenizer in the layout of Hugging Face Transformers."
    }
  },
  {
    reason: RefusalReason.RevisionNotFound({ repo, ref: "main", commit: null }),
    code: "revision_not_found",
    caller: {
      message: "The repository acme/model has no branch, tag or commit main.",
      remedy: "Choose a branch, tag or commit that the repository has, or leave ref out for its default branch."
    }
  },
  {
    reason: RefusalReason.RevisionNotFound({ repo, ref: "abcdef", commit: null }),
    code: "revision_not_found",
    caller: {
      message: "The repository acme/model has no branch, tag or commit abcdef.",
      remedy: "Choose a branch or tag that the repository has, or a commit by at least its first seven digits."
    }
  },
  {
    reason: RefusalReason.RevisionNotFound({ repo, ref: "abcdef0", commit: null }),
    code: "revision_not_found",
    caller: {
      message: "The repository acme/model has no branch, tag or commit abcdef0.",
      remedy: "Use the full commit. Short commits are found only among the newest 300 commits of main and the commits that branches and tags point to."
    }
  },
  {
    reason: RefusalReason.RevisionNotFound({ repo, ref: "main", commit }),
    code: "revision_not_found",
    caller: {
      message: "The repository acme/model has no branch, tag or commit aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.",
      remedy: "Choose a branch, tag or commit that the repository has, or leave ref out for its default branch."
    }
  },
  {
    reason: RefusalReason.UnsupportedFormat({ problem: "It has no weights.", kind: "model" }),
    code: "unsupported_format",
    caller: {
      message: "It has no weights.",
      remedy: "Choose a repository or a revision with safetensors weights, a configuration and a tokenizer in the layout of Hugging Face Transformers."
    }
  },
  {
    reason: RefusalReason.UnsupportedFormat({ problem: "It has no weights.", kind: "adapter" }),
    code: "unsupported_format",
    caller: {
      message: "It has no weights.",
      remedy:
        "Choose a LoRA adapter in the format of PEFT (adapter_config.json and adapter_model.safetensors) whose base is on the hub, or a repository with the adapter merged into its base."
    }
  },
  {
    reason: RefusalReason.RemoteCode({ file: "config.json" }),
    code: "remote_code_required",
    caller: {
      message: "config.json asks for Python from the repository (auto_map), which is never run.",
      remedy: "Choose a repository whose architecture and tokenizer the engines support without its code, such as the same model converted to Transformers."
    }
  },
  {
    reason: RefusalReason.UnreadProcessor({ file: "processing_x.py", unread: "processor_config.json" }),
    code: "remote_code_required",
    caller: {
      message:
        "Seatrial could not read processor_config.json, so it assumes that the model needs the processor code in processing_x.py. Python from a repository is never run.",
      remedy: "Choose a repository whose processor the engines support without its code, such as the same model converted to Transformers."
    }
  },
  {
    reason: RefusalReason.LicenseDenied({ licenses: ["mit"] }),
    code: "license_refused",
    caller: {
      message: "The license mit is on this installation's list of refused licenses.",
      remedy: "Choose a model under another license, or ask the installation's administrators."
    }
  },
  {
    reason: RefusalReason.LicenseDenied({ licenses: [] }),
    code: "license_refused",
    caller: {
      message: "The repository states no license, and this installation refuses such repositories.",
      remedy: "Choose a model under another license, or ask the installation's administrators."
    }
  },
  {
    reason: RefusalReason.LicenseNotAccepted({ licenses: ["mit"], repo: "Acme/Model" }),
    code: "license_refused",
    caller: {
      message: "The license mit is served only after an administrator of this installation has accepted it for Acme/Model.",
      remedy: "Ask an administrator to read the license and to add acme/model to HUB_ACCEPTED_LICENSES."
    }
  },
  {
    reason: RefusalReason.LicenseNotAllowed({ licenses: ["mit"], allowed: ["apache-2.0", "bsd"] }),
    code: "license_refused",
    caller: {
      message: "The license mit is not on this installation's list of allowed licenses.",
      remedy: "Choose a model under one of these licenses: apache-2.0, bsd. Or ask the installation's administrators."
    }
  },
  {
    reason: RefusalReason.LicenseDenied({ licenses: ["a", "b", "c", "d", "e", "f", "g"] }),
    code: "license_refused",
    caller: {
      message: "One of the licenses a, b, c, d, e and 2 more is on this installation's list of refused licenses.",
      remedy: "Choose a model under another license, or ask the installation's administrators."
    }
  },
  {
    reason: RefusalReason.UnsupportedArchitecture({ problem: "It is no decoder." }),
    code: "unsupported_architecture",
    caller: {
      message: "It is no decoder.",
      remedy: "Choose a repository of a decoder model for text in the layout of Transformers."
    }
  },
  {
    reason: RefusalReason.AdapterOfAdapter({ repo }),
    code: "unsupported_format",
    caller: {
      message: "acme/model is an adapter itself: adapters of adapters are not served.",
      remedy: "Choose a repository with the adapters merged into their base."
    }
  },
  {
    reason: RefusalReason.BaseRefused({
      adapter: "acme/adapter is a LoRA adapter of rank 8 (1 MiB) for acme/model",
      base: RefusalReason.TokenNotAllowed({ repo })
    }),
    code: "access_required",
    caller: {
      message:
        "acme/adapter is a LoRA adapter of rank 8 (1 MiB) for acme/model. Its base is refused: The hub token of the user who owns this API key may not read acme/model.",
      remedy: "Ask the repository's owner for access, or store the token of an account that has access."
    },
    object: {
      message:
        "acme/adapter is a LoRA adapter of rank 8 (1 MiB) for acme/model. Its base is refused: The hub token that the organization acme shares may not read acme/model.",
      remedy:
        "Ask the repository's owner for access, or store and share the token of an account that has access (`seatrial admin hub-connections set` and `share --org acme --email ...`)."
    }
  }
]

describe("a refusal of the hub", () => {
  for (const { caller, code, object = caller, reason } of cases) {
    it(`has its text for each audience: ${reason._tag}, ${caller.message.slice(0, 60)}`, () => {
      const refusal = new HubRefusal({ reason, commit: null })
      assert.deepStrictEqual([refusal.code, refusal.message, refusal.remedy], [code, caller.message, caller.remedy])
      assert.deepStrictEqual(refusal.textFor(RefusalAudience.ApiCaller()), caller)
      assert.deepStrictEqual(refusal.textFor(RefusalAudience.AppliedObject({ organization: "acme" })), object)
    })
  }
})
