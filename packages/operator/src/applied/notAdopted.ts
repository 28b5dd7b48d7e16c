import type { ModelNameTaken, NamedModelRefused } from "@seatrial/store"
import type { ModelDeployment } from "../resources/ModelDeployment.ts"
import type { AppliedRefusal } from "./decideApplied.ts"

/**
 * Why the store created no run for the object, and what to do. A model of another organization is reported like one
 * that does not exist.
 */
export const notAdopted = (
  error: ModelNameTaken | NamedModelRefused,
  { metadata: { name }, spec: { modelId } }: ModelDeployment,
  organization: string
): AppliedRefusal => {
  if (error._tag === "ModelNameTaken") {
    return {
      reason: "NameTaken",
      message: `The organization ${organization} already has a model ${name}. Give this object another name, or delete that model first. To revise that model, apply an object with its id as spec.modelId.`
    }
  }
  switch (error.why) {
    case "NotFound":
      return {
        reason: "ModelUnknown",
        message: `The organization ${organization} has no model ${modelId}. Apply another object with the right spec.modelId (seatrial models list), or without spec.modelId for a new model.`
      }
    case "OtherRepository":
      return {
        reason: "Invalid",
        message: `The model ${modelId} uses the repository ${error.conflict}. To deploy another repository, apply a ModelDeployment without modelId, which creates a new model.`
      }
    case "Applied":
      return { reason: "ModelTaken", message: `The ModelDeployment ${error.conflict} already represents the model ${modelId}. Change that object instead.` }
  }
}
