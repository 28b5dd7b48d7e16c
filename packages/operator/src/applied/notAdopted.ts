import type { ModelNameTaken, NamedModelRefused } from "@seatrial/store"
import type { ModelDeployment } from "../resources/ModelDeployment.ts"

/**
 * Why the store created no run for the object, and what to do. A model of another organization is reported like one
 * that does not exist.
 */
export const notAdopted = (
  error: ModelNameTaken | NamedModelRefused,
  { metadata: { name }, spec: { modelId } }: ModelDeployment,
  organization: string
): { readonly reason: string; readonly message: string } => {
  if (error._tag === "ModelNameTaken") {
    return {
      reason: "NameTaken",
      message: `The organization ${organization} has a model ${name} already: give this object another name, or delete that model first. To revise that model, apply an object with its id as spec.modelId.`
    }
  }
  switch (error.why) {
    case "NotFound":
      return {
        reason: "ModelUnknown",
        message: `The organization ${organization} has no model ${modelId}: apply another object with the right spec.modelId (seatrial models list), or without one for a new model.`
      }
    case "OtherRepository":
      return {
        reason: "Invalid",
        message: `The model ${modelId} is of the repository ${error.conflict}: for another one apply a ModelDeployment without modelId, which makes a new model.`
      }
    case "Applied":
      return { reason: "ModelTaken", message: `The ModelDeployment ${error.conflict} stands for the model ${modelId} already: change that one instead.` }
  }
}
