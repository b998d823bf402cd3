defmodule Shop.Cart do
  @moduledoc """
  A cart.

      def no do
  """

  @doc """
  Adds an article.
  """
  @spec add(t, String.t()) :: t
  def add(cart, sku) do
    if sku do
      cart
    end
  end

  def add(cart, sku, n), do: cart

  # Only here.
  defp total(cart) do
    cart
  end
end

defimpl String.Chars, for: Cart do
  def to_string(c), do: "cart"
end
