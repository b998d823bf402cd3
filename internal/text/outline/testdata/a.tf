terraform {
  required_version = ">= 1.5"
}

# The address of the load balancer.
resource "aws_lb" "front" {
  name = "front"
  tags = {
    team = "web"
  }
}

variable "region" { default = "eu-west-1" }

data "aws_iam_policy_document" "read" {
  policy = <<EOT
resource "no" "no" {
}
EOT
}

locals {
  a = 1
}
