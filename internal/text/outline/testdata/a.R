library(stats)

#' Adds two numbers.
#' @export
add <- function(x, y) {
  x + y
}

square = function(x) x^2

long.name <- function(
  a,
  b = list()
) {
  helper <- function() {
    1
  }
  a
}

setClass("Person", representation(
  name = "character"
))
print(add(1, 2))
